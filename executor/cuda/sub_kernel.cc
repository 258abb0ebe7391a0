// Tested in tests/conformance/ through Gemm and Conv, which add a bias.
#include "executor/cuda/sub_kernel.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "executor/cuda/kernels.h"
#include "executor/ops/one_node.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cuda {

absl::StatusOr<std::shared_ptr<CudaKernel>> MakeSubKernel(
    const Prepare& p, absl::string_view op,
    const std::vector<TensorType>& inputs, const TensorType& output,
    models::Attributes attributes) {
  const OneNode one = MakeOneNode(p, op, inputs, output, std::move(attributes));
  LOADLINE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel,
                            PrepareCudaKernel(one.graph, one.node));
  // The table holds CUDA kernels only.
  return std::shared_ptr<CudaKernel>(
      static_cast<CudaKernel*>(kernel.release()));
}

absl::StatusOr<std::shared_ptr<CudaKernel>> MakeLeanSubKernel(
    const Prepare& p, absl::string_view op,
    const std::vector<TensorType>& inputs, const TensorType& output,
    models::Attributes attributes) {
  LOADLINE_ASSIGN_OR_RETURN(
      std::shared_ptr<CudaKernel> kernel,
      MakeSubKernel(p, op, inputs, output, std::move(attributes)));
  if (kernel->workspace_bytes() > 0) {
    return absl::UnimplementedError(
        absl::StrCat(op, " in ", p.node().op, " (node ", p.node().name,
                     ") wants a workspace of its own"));
  }
  return kernel;
}

}  // namespace loadline::executor::cuda
