// A kernel of the table as a part of another: what a library lacks, such as
// adding a bias, is an operator that we have.
#ifndef LOADLINE_EXECUTOR_CUDA_SUB_KERNEL_H_
#define LOADLINE_EXECUTOR_CUDA_SUB_KERNEL_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "executor/cuda/cuda_kernel.h"
#include "executor/cuda/prepare.h"

namespace loadline::executor::cuda {

// The kernel of `op` from inputs of these types to one output. Who enqueues it
// gives it the workspace that it wants.
absl::StatusOr<std::shared_ptr<CudaKernel>> MakeSubKernel(
    const Prepare& p, absl::string_view op,
    const std::vector<TensorType>& inputs, const TensorType& output,
    models::Attributes attributes = {});

// The same of an operator that wants none, or Unimplemented.
absl::StatusOr<std::shared_ptr<CudaKernel>> MakeLeanSubKernel(
    const Prepare& p, absl::string_view op,
    const std::vector<TensorType>& inputs, const TensorType& output,
    models::Attributes attributes = {});

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_SUB_KERNEL_H_
