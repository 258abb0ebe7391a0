// The table of effort.h as code. Tested in effort_test.cc.
#include "planner/solve/effort.h"

#include <algorithm>

#include "planner/bound/bound.h"

namespace loadline::planner {
namespace {

constexpr int64_t kNormalWork = 10'000'000;
constexpr int64_t kModerateWork = 2'000'000;
constexpr int64_t kQuickWork = 300'000;
constexpr double kLongStallShare = 0.05;

int64_t WorkOf(Effort effort) {
  if (effort == Effort::kQuick) return kQuickWork;
  if (effort == Effort::kModerate) return kModerateWork;
  return kNormalWork;
}

}  // namespace

EffortPolicy PolicyOf(Effort effort, std::optional<int64_t> work_limit,
                      std::optional<int64_t> bound_work_limit) {
  EffortPolicy policy;
  policy.work_limit = work_limit.value_or(WorkOf(effort));
  const double share =
      static_cast<double>(policy.work_limit) / static_cast<double>(kNormalWork);
  policy.bound_work_limit = bound_work_limit.value_or(
      static_cast<int64_t>(static_cast<double>(StepBoundOptions().work_limit) *
                           std::clamp(share, 0.0, 1.0)));
  if (effort == Effort::kNormal) policy.retries = 1;
  if (effort == Effort::kThorough || effort == Effort::kModerate) {
    policy.retries = 2;
    policy.long_stall_share = kLongStallShare;
  }
  return policy;
}

}  // namespace loadline::planner
