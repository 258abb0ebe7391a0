// Removes dropouts with ratio 0, or all of them (for evaluation and
// --no-dropout).
//
//   y = Dropout(x) {ratio=0}
//   z = Relu(y)                ->   z = Relu(x)
#ifndef LOADLINE_PASSES_REMOVE_DROPOUT_H_
#define LOADLINE_PASSES_REMOVE_DROPOUT_H_

#include "absl/status/status.h"
#include "models/graph.h"

namespace loadline::passes {

enum class Dropouts { kOfRatioZero, kAll };

absl::Status RemoveDropout(models::Graph& graph, Dropouts which);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_REMOVE_DROPOUT_H_
