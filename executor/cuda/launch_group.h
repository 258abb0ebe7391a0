// Pending launches that can still be merged with the next one (group_kernel.h).
#ifndef LOADLINE_EXECUTOR_CUDA_LAUNCH_GROUP_H_
#define LOADLINE_EXECUTOR_CUDA_LAUNCH_GROUP_H_

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "executor/cuda/group_kernel.h"
#include "executor/device/device.h"

namespace loadline::executor::cuda {

class LaunchGroup {
 public:
  bool empty() const { return members_.empty(); }
  size_t size() const { return members_.size(); }

  // Whether the launch may be added: the group is not empty, the kernel joins
  // its kernels, and neither side touches what the other writes.
  bool Takes(const GroupKernel& kernel, const LaunchArgs& args) const;

  // Requires Takes or an empty group. `on_device`: the launch's addresses.
  void Add(GroupKernel& kernel, const LaunchArgs& args,
           const KernelArgs& on_device);

  // "update-1", "update-1 and 47 more".
  std::string name() const;

  // Enqueues the members and empties the group, even after an error. Requires
  // at least one member.
  absl::Status Enqueue(const LaunchContext& context);

  void Clear();

 private:
  struct Operands {
    std::vector<const std::byte*> inputs;
    std::vector<std::byte*> outputs;
  };

  std::vector<GroupKernel::Member> members_;
  std::deque<Operands> operands_;  // members' spans refer to these
  std::vector<Region> read_;
  std::vector<Region> written_;
  const char* first_name_ = "";
};

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_LAUNCH_GROUP_H_
