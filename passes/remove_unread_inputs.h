// Removes inputs that neither an output nor an update of the graph depends on,
// so that no data is needed for them, and dead nodes, some of which read them.
// Where that would be all of them, they stay.
//
//   input x, mask          input x
//   y = Relu(x)            y = Relu(x)
//   z = Exp(mask)     ->   output y
//   output y
#ifndef LOADLINE_PASSES_REMOVE_UNREAD_INPUTS_H_
#define LOADLINE_PASSES_REMOVE_UNREAD_INPUTS_H_

#include <vector>

#include "absl/status/status.h"
#include "models/graph.h"

namespace loadline::passes {

absl::Status RemoveUnreadInputs(models::Graph& graph);

// The inputs that would stay if these were the graph's outputs.
std::vector<models::ValueId> InputsRead(
    const models::Graph& graph, const std::vector<models::ValueId>& outputs);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_REMOVE_UNREAD_INPUTS_H_
