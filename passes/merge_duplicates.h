// Computes once what the graph computes twice: nodes with the same operator,
// inputs and attributes become one, and so do equal constants. Two dropouts
// differ by their salt and stay two; updates stay.
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
