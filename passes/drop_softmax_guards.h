// Removes the guard that torch.onnx.export writes behind the softmax of an
// attention, against rows in which every score is minus infinity, where no row
// can be such: masks are constants and finite. PyTorch has no guard there, and
// the attention behind it can be fused.
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
