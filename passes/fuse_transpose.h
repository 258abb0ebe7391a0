// Turns a Transpose of the last two dimensions into a flag of the MatMul or
// Gemm that reads it. A Transpose with other readers remains for these.
//
//   t = Transpose(w) {perm=[1, 0]}
//   y = MatMul(x, t)                   ->   y = MatMul(x, w) {trans_b=1}
#ifndef LOADLINE_PASSES_FUSE_TRANSPOSE_H_
#define LOADLINE_PASSES_FUSE_TRANSPOSE_H_

#include "absl/status/status.h"
#include "models/graph.h"

namespace loadline::passes {

absl::Status FuseTranspose(models::Graph& graph);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_FUSE_TRANSPOSE_H_
