// Each reader is rewritten separately; a Transpose that has lost all readers is
// removed here. Tested in tests/passes/fuse_transpose_test.cc.
#include "passes/fuse_transpose.h"

#include <utility>
#include <vector>

#include "passes/remove_dead_nodes.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::GraphIndex;
using models::Node;

// Whether the node is a Transpose that swaps just the last two dimensions.
bool SwapsLastTwo(const Node& node) {
  if (node.op != "Transpose") return false;
  models::Ints perm = node.attributes.IntList("perm");
  if (perm.size() < 2) return false;
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  for (size_t i = 0; i < perm.size(); ++i) {
    if (perm[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

// Replaces operand `position` of `product` by the input of its Transposes.
void AbsorbOperand(const Graph& graph, const GraphIndex& index, int position,
                   const char* flag, Node& product) {
  while (true) {
    const models::ValueId operand = product.inputs[position];
    const int32_t producer = index.producer[Index(operand)];
    if (producer < 0 || !SwapsLastTwo(graph.nodes[producer])) return;
    product.inputs[position] = graph.nodes[producer].inputs[0];
    product.attributes.Set(flag, 1 - product.attributes.Int(flag, 0));
  }
}

}  // namespace

absl::Status FuseTranspose(Graph& graph) {
  const GraphIndex index = models::IndexGraph(graph);
  for (Node& node : graph.nodes) {
    if (node.op == "MatMul") {
      AbsorbOperand(graph, index, 0, "trans_a", node);
      AbsorbOperand(graph, index, 1, "trans_b", node);
    } else if (node.op == "Gemm") {
      AbsorbOperand(graph, index, 0, "transA", node);
      AbsorbOperand(graph, index, 1, "transB", node);
    }
  }
  return RemoveDeadNodes(graph);
}

}  // namespace loadline::passes
