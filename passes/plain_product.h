// A product of two matrices as gradient rules emit it: a MatMul or Gemm without
// scaling or addition.
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

// The node as op(a) op(b) with nonempty operands; none for any other node.
std::optional<PlainProduct> AsPlainProduct(const models::Graph& graph,
                                           const models::Node& node);

// Attributes of a Gemm that computes this product.
models::Attributes GemmAttributes(const PlainProduct& product);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_PLAIN_PRODUCT_H_
