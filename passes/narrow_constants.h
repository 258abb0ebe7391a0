// Stores one copy of a constant that repeats along a dimension, if its readers
// broadcast it anyway. Exporters write out an attention mask for every example.
//
//   mask f32[32,1,64,64], 32 times the same     mask f32[1,1,64,64]
//   Add(scores f32[32,4,64,64], mask)       ->  Add(scores, mask)
#ifndef LOADLINE_PASSES_NARROW_CONSTANTS_H_
#define LOADLINE_PASSES_NARROW_CONSTANTS_H_

#include "absl/status/status.h"
#include "models/graph.h"

namespace loadline::passes {

absl::Status NarrowConstants(models::Graph& graph);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_NARROW_CONSTANTS_H_
