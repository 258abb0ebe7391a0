// The fused node takes the product's place. Readers of the sum still come after
// it, because only sums that follow the product are fused. Tested in
// tests/passes/fuse_bias_gradient_test.cc.
#include "passes/fuse_bias_gradient.h"

#include <optional>
#include <string>
#include <vector>

#include "passes/plain_product.h"
#include "passes/rewrite.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::GraphIndex;
using models::Ints;
using models::Node;
using models::TensorType;
using models::ValueId;

// Whether the node sums the rows of a bf16 matrix into one row.
bool SumsRows(const Graph& graph, const Node& node) {
  if (node.op != "ReduceSum" || node.attributes.Int("keepdims", 1) != 0) {
    return false;
  }
  const TensorType& type = graph.value(node.inputs[0]).type;
  return type.dtype == models::DType::kBF16 && type.rank() == 2 &&
         node.attributes.IntList("axes", {}) == Ints{0};
}

// Which operand of the product is dy, contracted over its rows.
std::optional<std::string> PlaceOf(ValueId dy, const PlainProduct& product) {
  if (product.a == dy && product.trans_a) return "a";
  if (product.b == dy && !product.trans_b) return "b";
  return std::nullopt;
}

}  // namespace

absl::Status FuseBiasGradient(Graph& graph) {
  const GraphIndex index = models::IndexGraph(graph);
  std::vector<bool> keep(graph.nodes.size(), true);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& sum = graph.nodes[i];
    if (!SumsRows(graph, sum)) continue;
    for (models::NodeId id : index.consumers[Index(sum.inputs[0])]) {
      if (Index(id) >= i) break;
      Node& node = graph.nodes[Index(id)];
      const std::optional<PlainProduct> product = AsPlainProduct(graph, node);
      if (!product.has_value()) continue;
      const auto place = PlaceOf(sum.inputs[0], *product);
      if (!place.has_value()) continue;
      node.op = "GemmBiasGrad";
      node.attributes = GemmAttributes(*product);
      node.attributes.Set("dy", *place);
      node.outputs.push_back(sum.outputs[0]);
      keep[i] = false;
      break;
    }
  }
  // Not KeepNodes: the outputs of removed sums still exist.
  std::vector<Node> nodes;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (keep[i]) nodes.push_back(std::move(graph.nodes[i]));
  }
  graph.nodes = std::move(nodes);
  return absl::OkStatus();
}

}  // namespace loadline::passes
