// Merging launches is invisible: no member touches bytes that another one
// writes, and nothing on the lane comes between them. Tested in
// tests/executor/cuda/cuda_launch_group_test.cc.
#include "executor/cuda/launch_group.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/base/check.h"

namespace loadline::executor::cuda {
namespace {

bool AnyOverlap(absl::Span<const Region> some,
                absl::Span<const Region> others) {
  return std::any_of(some.begin(), some.end(), [&](const Region& a) {
    return IsPresent(a) &&
           std::any_of(others.begin(), others.end(), [&](const Region& b) {
             return IsPresent(b) && Overlap(a, b);
           });
  });
}

}  // namespace

bool LaunchGroup::Takes(const GroupKernel& kernel,
                        const LaunchArgs& args) const {
  if (empty()) return false;
  const GroupKernel& first = *members_[0].kernel;
  return static_cast<int64_t>(members_.size()) < first.most_members() &&
         first.Joins(kernel) && !AnyOverlap(args.outputs, read_) &&
         !AnyOverlap(args.outputs, written_) &&
         !AnyOverlap(args.inputs, written_);
}

void LaunchGroup::Add(GroupKernel& kernel, const LaunchArgs& args,
                      const KernelArgs& on_device) {
  LOADLINE_CHECK(kernel.workspace_bytes() == 0);
  if (empty()) first_name_ = args.name;
  const Operands& operands = operands_.emplace_back(
      Operands{{on_device.inputs.begin(), on_device.inputs.end()},
               {on_device.outputs.begin(), on_device.outputs.end()}});
  members_.push_back({&kernel,
                      {.inputs = operands.inputs,
                       .outputs = operands.outputs,
                       .scalars = on_device.scalars}});
  read_.insert(read_.end(), args.inputs.begin(), args.inputs.end());
  written_.insert(written_.end(), args.outputs.begin(), args.outputs.end());
}

std::string LaunchGroup::name() const {
  if (members_.size() < 2) return first_name_;
  return absl::StrCat(first_name_, " and ", members_.size() - 1, " more");
}

absl::Status LaunchGroup::Enqueue(const LaunchContext& context) {
  LOADLINE_CHECK(!empty());
  const absl::Status status =
      members_[0].kernel->EnqueueGroup(members_, context);
  Clear();
  return status;
}

void LaunchGroup::Clear() {
  members_.clear();
  operands_.clear();
  read_.clear();
  written_.clear();
}

}  // namespace loadline::executor::cuda
