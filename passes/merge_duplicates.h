// Removes duplicate computations: nodes with the same operator, inputs and
// attributes become one, and so do equal constants. Two dropouts stay separate
// because their salts differ; updates stay too.
//
//   a = Exp(x)             a = Exp(x)
//   b = Exp(x)        ->   c = Add(a, a)
//   c = Add(a, b)
#ifndef LOADLINE_PASSES_MERGE_DUPLICATES_H_
#define LOADLINE_PASSES_MERGE_DUPLICATES_H_

#include "absl/status/status.h"
#include "models/graph.h"

namespace loadline::passes {

absl::Status MergeDuplicates(models::Graph& graph);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_MERGE_DUPLICATES_H_
