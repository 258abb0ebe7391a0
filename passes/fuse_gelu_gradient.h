// The gradient that goes back into Gelu is a product, and a library applies
// Gelu's slope before it writes it.
//
//   m = Gemm(dy, w)                        r = Reshape(x) {shape of m}
//   h = Reshape(m) {shape of x}     ->     g = GemmGeluGrad(dy, w, r)
//   dx = GeluGrad(h, x)                    dx = Reshape(g) {shape of x}
//
// The reshapes are views; matrices need none. Only in bf16 and for the form
// with tanh, which is the libraries' own. Left alone: products that anything
// else reads. Nothing is lost for a plan: nobody but GeluGrad reads the
// product, and it is written over.
#ifndef LOADLINE_PASSES_FUSE_GELU_GRADIENT_H_
#define LOADLINE_PASSES_FUSE_GELU_GRADIENT_H_

#include "absl/status/status.h"
#include "models/graph.h"

namespace loadline::passes {

absl::Status FuseGeluGradient(models::Graph& graph);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_FUSE_GELU_GRADIENT_H_
