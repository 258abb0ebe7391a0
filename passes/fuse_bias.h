// Fuses the addition of one row into the matrix product before it, as Gemm's
// bias, which libraries add before they write the result.
//
//   m = MatMul(x, w)                    r = Reshape(x) {shape=[rows, inner]}
//   y = Add(m, b)             ->        g = Gemm(r, w, b)
//                                       y = Reshape(g) {shape of y}
//
// The reshapes are views; a matrix x needs none. Not changed: products with
// other readers, a w that is not a single matrix, a b that is not one row.
//
// Activations are not fused, although libraries offer them as epilogues too: a
// plan can recompute a separate Gelu from its saved input for a fraction of the
// product's cost. ARCHITECTURE.md has the figures.
#ifndef LOADLINE_PASSES_FUSE_BIAS_H_
#define LOADLINE_PASSES_FUSE_BIAS_H_

#include "absl/status/status.h"
#include "models/graph.h"

namespace loadline::passes {

absl::Status FuseBias(models::Graph& graph);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_FUSE_BIAS_H_
