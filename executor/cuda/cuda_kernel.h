// A kernel that enqueues its work on a stream.
//
// Enqueue does not wait, allocates nothing and reads no tensor on the host, so
// the launches of a step can be captured as one CUDA graph and replayed.
// Numbers that change from step to step are read on the device: here
// KernelArgs::scalars is a DEVICE pointer.
#ifndef LOADLINE_EXECUTOR_CUDA_CUDA_KERNEL_H_
#define LOADLINE_EXECUTOR_CUDA_CUDA_KERNEL_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "executor/cuda/data_errors.h"
#include "executor/cuda/stream.h"
#include "executor/device/kernel.h"

namespace loadline::executor::cuda {

// Context of a launch within its step.
struct LaunchContext {
  Stream stream = nullptr;
  // In device memory; kNoDataError at the start of a step.
  DataErrorWord* data_error = nullptr;
  // Number of the launch in its step, below 2^24: identifies the kernel in
  // data_error.
  int64_t launch = 0;

  DataErrorSink sink() const { return {data_error, launch}; }
};

class CudaKernel : public Kernel {
 public:
  // `args` as for Run, but with device pointers. Buffers are at least 64-byte
  // aligned, as in an arena: kernels load 16 bytes at once. Internal: the
  // launch itself fails.
  virtual absl::Status Enqueue(const KernelArgs& args,
                               const LaunchContext& context) = 0;

  // Describes the data error that this kernel reported for `position`.
  virtual absl::Status DescribeDataError(int64_t position) const {
    return absl::InternalError(
        absl::StrCat("a kernel reported position ", position));
  }

  // FailedPrecondition: this kernel needs a stream.
  absl::Status Run(const KernelArgs&) final {
    return absl::FailedPreconditionError(
        "a CUDA kernel can only be enqueued on a stream");
  }
};

using DescribeFunction = std::function<absl::Status(int64_t position)>;
// Lists a kernel's algorithms; called only when algorithms are measured.
using AlgorithmsFunction = std::function<std::vector<std::string>()>;

// A kernel that calls `enqueue`: Status(const KernelArgs&, const
// LaunchContext&).
template <typename Callable>
class FunctionKernel final : public CudaKernel {
 public:
  FunctionKernel(Callable enqueue, int64_t workspace_bytes,
                 DescribeFunction describe, AlgorithmsFunction algorithms)
      : enqueue_(std::move(enqueue)),
        workspace_bytes_(workspace_bytes),
        describe_(std::move(describe)),
        algorithms_(std::move(algorithms)) {}

  int64_t workspace_bytes() const override { return workspace_bytes_; }
  std::vector<std::string> algorithms() const override {
    return algorithms_ ? algorithms_() : std::vector<std::string>();
  }

  absl::Status Enqueue(const KernelArgs& args,
                       const LaunchContext& context) override {
    return enqueue_(args, context);
  }

  absl::Status DescribeDataError(int64_t position) const override {
    return describe_ ? describe_(position)
                     : CudaKernel::DescribeDataError(position);
  }

 private:
  Callable enqueue_;
  int64_t workspace_bytes_;
  DescribeFunction describe_;
  AlgorithmsFunction algorithms_;
};

template <typename Callable>
std::unique_ptr<Kernel> MakeKernel(Callable enqueue,
                                   int64_t workspace_bytes = 0,
                                   DescribeFunction describe = nullptr,
                                   AlgorithmsFunction algorithms = nullptr) {
  return std::make_unique<FunctionKernel<Callable>>(
      std::move(enqueue), workspace_bytes, std::move(describe),
      std::move(algorithms));
}

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_CUDA_KERNEL_H_
