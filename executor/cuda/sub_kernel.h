// A kernel used as part of another one: what a library lacks, such as adding a
// bias, is an operator of ours.
#ifndef LOADLINE_EXECUTOR_CUDA_SUB_KERNEL_H_
#define LOADLINE_EXECUTOR_CUDA_SUB_KERNEL_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "executor/cuda/cuda_kernel.h"
#include "executor/cuda/prepare.h"

namespace loadline::executor::cuda {

// The kernel of `op` from inputs of these types to one output. The caller
// provides its workspace.
absl::StatusOr<std::shared_ptr<CudaKernel>> MakeSubKernel(
    const Prepare& p, absl::string_view op,
    const std::vector<TensorType>& inputs, const TensorType& output,
    models::Attributes attributes = {});

// The same for a kernel without workspace; Unimplemented if it needs one.
absl::StatusOr<std::shared_ptr<CudaKernel>> MakeLeanSubKernel(
    const Prepare& p, absl::string_view op,
    const std::vector<TensorType>& inputs, const TensorType& output,
    models::Attributes attributes = {});

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_SUB_KERNEL_H_
