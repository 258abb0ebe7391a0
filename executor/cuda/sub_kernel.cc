// A graph of one node. Tested in tests/conformance/, by Gemm and Conv with what
// they add.
#include "executor/cuda/sub_kernel.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "executor/cuda/kernels.h"
#include "planner/status_macros.h"

namespace loadline::executor::cuda {

absl::StatusOr<std::shared_ptr<CudaKernel>> MakeSubKernel(
    const Prepare& p, absl::string_view op,
    const std::vector<TensorType>& inputs, const TensorType& output,
    models::Attributes attributes) {
  models::Graph graph;
  models::Node node;
  node.name = p.node().name;
  node.op = std::string(op);
  node.attributes = std::move(attributes);
  for (const TensorType& type : inputs) {
    node.inputs.push_back(
        graph.AddInput(absl::StrCat("input", node.inputs.size()), type));
  }
  // Not by AddNode: kernels take more types than graphs have so far.
  node.outputs.push_back(graph.AddInput("output", output));
  LOADLINE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel,
                            PrepareCudaKernel(graph, node));
  if (kernel->workspace_bytes() > 0) {
    return absl::UnimplementedError(
        absl::StrCat(op, " in ", p.node().op, " (node ", p.node().name,
                     ") wants a workspace of its own"));
  }
  // The table holds CUDA kernels only.
  return std::shared_ptr<CudaKernel>(
      static_cast<CudaKernel*>(kernel.release()));
}

}  // namespace loadline::executor::cuda
