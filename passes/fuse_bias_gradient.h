// Fuses the gradient of a bias with that of the weight: both read dy, which a
// library then reads only once.
//
//   dw = Gemm(dy, x) {transA=1}
//   db = ReduceSum(dy) {axes=[0]}   ->   dw, db = GemmBiasGrad(dy, x)
//                                                 {transA=1, dy=a}
//
// Only in bf16: in f32 the product takes so much longer than the sum that the
// gain would not show. Not changed: sums before the product, and sums over
// anything but the rows that the product contracts.
#ifndef LOADLINE_PASSES_FUSE_BIAS_GRADIENT_H_
#define LOADLINE_PASSES_FUSE_BIAS_GRADIENT_H_

#include "absl/status/status.h"
#include "models/graph.h"

namespace loadline::passes {

absl::Status FuseBiasGradient(models::Graph& graph);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_FUSE_BIAS_GRADIENT_H_
