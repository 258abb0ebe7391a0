// The families of kernels, one function each; kernels.cc joins them into the
// table. A family's file holds everything about its operators on a GPU.
#ifndef LOADLINE_EXECUTOR_CUDA_FAMILIES_H_
#define LOADLINE_EXECUTOR_CUDA_FAMILIES_H_

#include "absl/types/span.h"
#include "executor/cuda/prepare.h"

namespace loadline::executor::cuda {

absl::Span<const KernelEntry> PointwiseKernels();

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_FAMILIES_H_
