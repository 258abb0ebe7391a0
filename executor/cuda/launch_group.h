// Launches that have been told and not enqueued yet, because what follows may
// go with them as one (group_kernel.h).
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

  // Whether the launch may go with those that are there: there are some, its
  // kernel joins theirs, and none of them touches what it writes, nor it what
  // they write.
  bool Takes(const GroupKernel& kernel, const LaunchArgs& args) const;

  // Requires Takes, or an empty group. `on_device`: its addresses.
  void Add(GroupKernel& kernel, const LaunchArgs& args,
           const KernelArgs& on_device);

  // "update-1", "update-1 and 47 more".
  std::string name() const;

  // Enqueues what is there, and empties the group whatever comes of it.
  // Requires one at least.
  absl::Status Enqueue(const LaunchContext& context);

  void Clear();

 private:
  struct Operands {
    std::vector<const std::byte*> inputs;
    std::vector<std::byte*> outputs;
  };

  std::vector<GroupKernel::Member> members_;
  std::deque<Operands> operands_;  // the members' spans point here
  std::vector<Region> read_;
  std::vector<Region> written_;
  const char* first_name_ = "";
};

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_LAUNCH_GROUP_H_
