// A row added to every row of a product becomes the product's own bias, which
// libraries add before they write the result.
//
//   m = MatMul(x, w)                    r = Reshape(x) {shape=[rows, inner]}
//   y = Add(m, b)             ->        g = Gemm(r, w, b)
//                                       y = Reshape(g) {shape of y}
//
// The reshapes are views; a matrix x needs none. Left alone: products that
// anything else reads, a w that is not one matrix, and a b that is not one row.
//
// Activations stay nodes of their own. Libraries have them as epilogues too,
// but a node is what a plan runs again: Gelu from its kept input costs a
// fraction of the product that it would be a part of. Numbers stand in
// ARCHITECTURE.md.
#ifndef LOADLINE_PASSES_FUSE_BIAS_H_
#define LOADLINE_PASSES_FUSE_BIAS_H_

#include "absl/status/status.h"
#include "models/graph.h"

namespace loadline::passes {

absl::Status FuseBias(models::Graph& graph);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_FUSE_BIAS_H_
