// Tested by tests/passes/compress/reduced_axis_test.cc.
#include "passes/compress/reduced_axis.h"

#include <cstddef>

namespace loadline::passes {
namespace {

using models::Graph;
using models::Node;
using models::ValueId;

// The Transpose that makes `id` of `weight`, or null.
const Node* TransposeOf(const Graph& model, ValueId id, ValueId weight) {
  for (const Node& node : model.nodes) {
    if (node.op == "Transpose" && node.inputs[0] == weight &&
        node.outputs[0] == id) {
      return &node;
    }
  }
  return nullptr;
}

// Of the operand at `position` with `rank` axes, as the node sees it.
std::optional<int64_t> AxisOfOperand(const Node& node, size_t position,
                                     int64_t rank) {
  const bool first = position == 0;
  if (position > 1 || rank < 2) return std::nullopt;
  if (node.op == "Conv" && !first) return 1;
  if (node.op == "ConvInputGrad" && !first) return 0;
  if (node.op == "Gemm") {
    const char* flag = first ? "transA" : "transB";
    const bool transposed = node.attributes.Int(flag, 0) != 0;
    return first == transposed ? 0 : 1;
  }
  if (node.op == "MatMul") return first ? rank - 1 : rank - 2;
  return std::nullopt;
}

}  // namespace

std::optional<ReducedAxis> ReducedAxisOf(const Graph& model, const Node& node,
                                         ValueId weight) {
  const models::TensorType& type = model.value(weight).type;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId id = node.inputs[i];
    if (id == models::kNoValue) continue;
    const Node* transpose = nullptr;
    if (id != weight) {
      transpose = TransposeOf(model, id, weight);
      if (transpose == nullptr) continue;
    }
    const std::optional<int64_t> seen = AxisOfOperand(node, i, type.rank());
    if (!seen.has_value()) continue;
    int64_t axis = *seen;
    if (transpose != nullptr) {
      axis = transpose->attributes.IntList("perm")[static_cast<size_t>(axis)];
    }
    const int64_t groups = node.op == "ConvInputGrad"
                               ? node.attributes.Int("group", 1)
                               : int64_t{1};
    return ReducedAxis{axis, type.dims[static_cast<size_t>(axis)] / groups};
  }
  return std::nullopt;
}

}  // namespace loadline::passes
