// Tested in tests/passes/fuse_bias_gradient_test.cc.
#include "passes/plain_product.h"

namespace loadline::passes {

using models::Graph;
using models::Node;
using models::TensorType;
using models::ValueId;

std::optional<PlainProduct> AsPlainProduct(const Graph& graph,
                                           const Node& node) {
  const bool gemm = node.op == "Gemm";
  if (!gemm && node.op != "MatMul") return std::nullopt;
  if (node.inputs.size() != 2 || node.attributes.Float("alpha", 1) != 1) {
    return std::nullopt;
  }
  for (ValueId id : node.inputs) {
    const TensorType& type = graph.value(id).type;
    if (type.rank() != 2 || type.elements() == 0) return std::nullopt;
  }
  const auto flag = [&](const char* of_gemm, const char* of_matmul) {
    return node.attributes.Int(gemm ? of_gemm : of_matmul, 0) != 0;
  };
  return PlainProduct{node.inputs[0], node.inputs[1], flag("transA", "trans_a"),
                      flag("transB", "trans_b")};
}

models::Attributes GemmAttributes(const PlainProduct& product) {
  return {{"transA", int64_t{product.trans_a}},
          {"transB", int64_t{product.trans_b}}};
}

}  // namespace loadline::passes
