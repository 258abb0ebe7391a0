// What a gradient rule leaves of a product of two matrices: a MatMul or a Gemm
// that neither scales nor adds.
#ifndef LOADLINE_PASSES_PLAIN_PRODUCT_H_
#define LOADLINE_PASSES_PLAIN_PRODUCT_H_

#include <optional>

#include "models/graph.h"

namespace loadline::passes {

struct PlainProduct {
  models::ValueId a = models::kNoValue;
  models::ValueId b = models::kNoValue;
  bool trans_a = false;
  bool trans_b = false;
};

// The node as one: op(a) op(b), neither operand empty. Nothing for any other
// node.
std::optional<PlainProduct> AsPlainProduct(const models::Graph& graph,
                                           const models::Node& node);

// Attributes of a Gemm that is this product.
models::Attributes GemmAttributes(const PlainProduct& product);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_PLAIN_PRODUCT_H_
