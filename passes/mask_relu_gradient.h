// Lets Relu's gradient read one bit per element instead of Relu's output, where
// nothing else in the backward pass reads that output. Same bits.
//
//   y = Relu(x)                       y = Relu(x)
//   z = MaxPool(y)                    m = Encode(y) {codec=positive}
//   ...                          ->   z = MaxPool(y)
//   dx = ReluGrad(dy, y)              ...
//                                     dx = ReluMaskGrad(dy, m)
//
// A codec of the planner could not do this: its decoded form would have to be
// right for every reader, and MaxPool needs more than the sign. The bits are a
// value of their own, which is kept, copied or made again as any other. No time
// is lost: writing them reads y once more, and the gradient then does not.
#ifndef LOADLINE_PASSES_MASK_RELU_GRADIENT_H_
#define LOADLINE_PASSES_MASK_RELU_GRADIENT_H_

#include "absl/status/status.h"
#include "models/graph.h"

namespace loadline::passes {

// After AddGradients. An output of the graph, one that the backward pass reads
// for another purpose (a convolution's gradient), and one of less than 4 KiB
// stay as they are.
absl::Status MaskReluGradient(models::Graph& graph);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_MASK_RELU_GRADIENT_H_
