// Recognizes attention in the operators that exporters write: two matrix
// products around a softmax, a scale on either operand, on both or on the
// scores, an additive mask or a Where, a dropout of the probabilities.
//
//   s = MatMul(Mul(q, a), Mul(Transpose(k), a))
//   p = Softmax(Add(s, causal mask))       ->   y, lse = Attention(q, k, v)
//   y = MatMul(Dropout(p), v)                     {scale=a², causal=1, ratio}
//
// The backward pass then needs one saved number per row instead of the matrix
// of probabilities. If q, k, v and y are heads transposed from [batch,
// sequence, heads, width] and back, the operator reads them in that layout and
// the transposes are removed too. Not changed: probabilities or scores with
// other readers, masks that depend on parameters, whose gradient needs the
// matrix, and heads wider than 256.
#ifndef LOADLINE_PASSES_FUSE_ATTENTION_H_
#define LOADLINE_PASSES_FUSE_ATTENTION_H_

#include "absl/status/status.h"
#include "models/graph.h"

namespace loadline::passes {

absl::Status FuseAttention(models::Graph& graph);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_FUSE_ATTENTION_H_
