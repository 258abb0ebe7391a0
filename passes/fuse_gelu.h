// Recognizes Gelu in the arithmetic that exporters write for it: the exact form
// x/2·(1 + erf(x/√2)) and the tanh form x/2·(1 + tanh(√(2/π)·(x +
// 0.044715·x³))), in any order of the factors.
//
//   a = Div(x, 1.4142135)
//   b = Erf(a)
//   c = Add(b, 1)              ->   y = Gelu(x) {approximate="none"}
//   d = Mul(x, c)
//   y = Mul(d, 0.5)
//
// One node needs one saved value for the backward pass instead of five.
#ifndef LOADLINE_PASSES_FUSE_GELU_H_
#define LOADLINE_PASSES_FUSE_GELU_H_

#include "absl/status/status.h"
#include "models/graph.h"

namespace loadline::passes {

absl::Status FuseGelu(models::Graph& graph);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_FUSE_GELU_H_
