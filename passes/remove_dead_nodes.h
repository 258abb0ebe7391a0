// Removes nodes that neither an output nor an update of the graph needs.
//
//   y = Relu(x)            y = Relu(x)
//   z = Exp(x)        ->   output y
//   output y
#ifndef LOADLINE_PASSES_REMOVE_DEAD_NODES_H_
#define LOADLINE_PASSES_REMOVE_DEAD_NODES_H_

#include "absl/status/status.h"
#include "models/graph.h"

namespace loadline::passes {

absl::Status RemoveDeadNodes(models::Graph& graph);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_REMOVE_DEAD_NODES_H_
