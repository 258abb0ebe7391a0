// Fuses Gelu's gradient into the matrix product before it: a library multiplies
// by Gelu's slope before it writes the product.
//
//   m = Gemm(dy, w)                        r = Reshape(x) {shape of m}
//   h = Reshape(m) {shape of x}     ->     g = GemmGeluGrad(dy, w, r)
//   dx = GeluGrad(h, x)                    dx = Reshape(g) {shape of x}
//
// The reshapes are views; matrices need none. Only in bf16 and for the tanh
// form, which is the one that libraries have. Not changed: products with other
// readers. A plan loses no choice by it: only GeluGrad reads the product, and
// overwrites it.
#ifndef LOADLINE_PASSES_FUSE_GELU_GRADIENT_H_
#define LOADLINE_PASSES_FUSE_GELU_GRADIENT_H_

#include "absl/status/status.h"
#include "models/graph.h"

namespace loadline::passes {

absl::Status FuseGeluGradient(models::Graph& graph);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_FUSE_GELU_GRADIENT_H_
