// Small helpers for passes that rewrite a graph in place.
#ifndef LOADLINE_PASSES_REWRITE_H_
#define LOADLINE_PASSES_REWRITE_H_

#include <optional>
#include <vector>

#include "models/graph.h"

namespace loadline::passes {

// The number in a one-element f32 constant; nothing for any other value.
std::optional<double> ScalarConstant(const models::Graph& graph,
                                     models::ValueId id);

// True for a dtype that gradients flow through.
bool IsFloat(models::DType dtype);

// Every use of value v (as a node's input, an output of the graph, the new
// contents of an update) becomes a use of replacement[v], followed to the end
// of the chain. `replacement` has one entry per value; an unreplaced value
// stands for itself.
void ReplaceUses(models::Graph& graph,
                 const std::vector<models::ValueId>& replacement);
// The replacement of ReplaceUses that changes nothing.
std::vector<models::ValueId> IdentityReplacement(const models::Graph& graph);

// Keeps the nodes marked in `keep` (one entry per node) and drops the values
// that only the others made; ids move, models::EraseNodes.
void KeepNodes(models::Graph& graph, const std::vector<bool>& keep);

// For each value, whether it is an output of the graph or one side of an
// update: such a value keeps its name.
std::vector<bool> NamedByGraph(const models::Graph& graph);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_REWRITE_H_
