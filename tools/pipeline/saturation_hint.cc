// Tested by tests/tools/pipeline/saturation_hint_test.cc.
#include "tools/pipeline/saturation_hint.h"

#include <vector>

namespace loadline::tools {
namespace {

using models::Graph;
using models::Index;
using models::Node;
using models::ValueId;

// The nodes that multiply by `weight`, also through its quantizer and moves.
int64_t Products(const Graph& graph, const models::GraphIndex& index,
                 ValueId weight) {
  int64_t products = 0;
  std::vector<ValueId> open = {weight};
  while (!open.empty()) {
    const ValueId value = open.back();
    open.pop_back();
    for (models::NodeId reader : index.consumers[Index(value)]) {
      const Node& node = graph.node(reader);
      if (node.op == "Conv" || node.op == "ConvTranspose" ||
          node.op == "Gemm" || node.op == "MatMul") {
        ++products;
      } else if (node.op == "FakeQuantize" || node.op == "Transpose" ||
                 node.op == "Reshape" || node.op == "Identity") {
        open.push_back(node.outputs[0]);
      }
    }
  }
  return products;
}

}  // namespace

std::string SaturationHint(const Graph& graph,
                           absl::Span<const passes::QuantizedTensor> tensors) {
  const models::GraphIndex index = models::IndexGraph(graph);
  bool wide = false, shared = false;
  for (const passes::QuantizedTensor& tensor : tensors) {
    if (!tensor.weight || tensor.bits != 8 ||
        tensor.quantizer == passes::Quantizer::kKMeans) {
      continue;
    }
    wide = true;
    const auto weight = graph.Find(tensor.name);
    shared =
        shared || (weight.has_value() && Products(graph, index, *weight) > 1);
  }
  if (!wide) return "";
  // ONNX Runtime 1.32 fails with that option where two integer nodes read one
  // weight: "Attempt to replace the existing tensor".
  if (shared) {
    return "weights have 8 bits: on x86 without VNNI, ONNX Runtime's sums "
           "saturate; reduce_range: true in the recipe's degree avoids it "
           "(session.x64quantprecision does not, because several nodes read "
           "one weight)";
  }
  return "weights have 8 bits: on x86 without VNNI, ONNX Runtime's sums "
         "saturate unless the session option session.x64quantprecision is 1; "
         "reduce_range: true in the recipe's degree avoids it";
}

}  // namespace loadline::tools
