// torch.onnx.export writes a guard after the softmax of an attention, against
// rows in which every score is minus infinity. This pass removes the guard
// where no such row can occur, because all masks are finite constants. PyTorch
// computes no guard there, and without it the attention can be fused.
//
//   p = Softmax(Add(scores, mask))
//   q = Where(Not(Equal(p, p)), 0, p)     ->     p
#ifndef LOADLINE_PASSES_DROP_SOFTMAX_GUARDS_H_
#define LOADLINE_PASSES_DROP_SOFTMAX_GUARDS_H_

#include "absl/status/status.h"
#include "models/graph.h"

namespace loadline::passes {

absl::Status DropSoftmaxGuards(models::Graph& graph);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_DROP_SOFTMAX_GUARDS_H_
