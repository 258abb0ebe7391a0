// Kernels whose launches can be merged: the updates of all parameters become
// one launch.
#ifndef LOADLINE_EXECUTOR_CUDA_GROUP_KERNEL_H_
#define LOADLINE_EXECUTOR_CUDA_GROUP_KERNEL_H_

#include <cstdint>

#include "absl/types/span.h"
#include "executor/cuda/cuda_kernel.h"

namespace loadline::executor::cuda {

class GroupKernel : public CudaKernel {
 public:
  struct Member {
    GroupKernel* kernel = nullptr;
    KernelArgs args;
  };

  // Whether a launch of this kernel and one of `other` may be in one group.
  // Must be an equivalence: it holds for all pairs of a group if it holds for
  // each member and the first.
  virtual bool Joins(const GroupKernel& other) const = 0;
  // Limit for one group.
  virtual int64_t most_members() const = 0;

  // Launches the members, whose kernels join this one, in any order or at once;
  // each gives the bits that it gives alone. No member writes what another one
  // reads or writes. None has a workspace or reports data errors.
  virtual absl::Status EnqueueGroup(absl::Span<const Member> members,
                                    const LaunchContext& context) = 0;

  absl::Status Enqueue(const KernelArgs& args,
                       const LaunchContext& context) final {
    const Member member = {this, args};
    return EnqueueGroup({&member, 1}, context);
  }
};

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_GROUP_KERNEL_H_
