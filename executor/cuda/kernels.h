// A GPU's kernels: one prepared kernel per node of a graph.
#ifndef LOADLINE_EXECUTOR_CUDA_KERNELS_H_
#define LOADLINE_EXECUTOR_CUDA_KERNELS_H_

#include "absl/strings/string_view.h"
#include "executor/cuda/prepare.h"
#include "models/graph.h"

namespace loadline::executor {

// As PrepareCpuKernel; every kernel is a cuda::CudaKernel.
PreparedKernel PrepareCudaKernel(const models::Graph& graph,
                                 const models::Node& node);

// Whether CUDA has a kernel for this operator.
bool HasCudaKernel(absl::string_view op);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_CUDA_KERNELS_H_
