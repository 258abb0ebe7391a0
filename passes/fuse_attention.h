// Recognizes attention in what exporters write it as: two matrix products
// around a softmax, a scale on either operand, on both or on the scores, an
// additive mask or a Where, a dropout of the probabilities.
//
//   s = MatMul(Mul(q, a), Mul(Transpose(k), a))
//   p = Softmax(Add(s, causal mask))       ->   y, lse = Attention(q, k, v)
//   y = MatMul(Dropout(p), v)                     {scale=a², causal=1, ratio}
//
// One number per row is saved for the backward pass instead of the matrix of
// probabilities. Where q, k, v and y are heads transposed out of [batch,
// sequence, heads, width] and back, the operator reads them there and the
// transposes go too. Left alone: probabilities or scores that anything else
// reads, and masks with parameters in them, whose gradient needs the matrix.
#ifndef LOADLINE_PASSES_FUSE_ATTENTION_H_
#define LOADLINE_PASSES_FUSE_ATTENTION_H_

#include "absl/status/status.h"
#include "models/graph.h"

namespace loadline::passes {

absl::Status FuseAttention(models::Graph& graph);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_FUSE_ATTENTION_H_
