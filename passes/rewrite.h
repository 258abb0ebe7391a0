// Helpers of passes that rewrite a graph in place.
#ifndef LOADLINE_PASSES_REWRITE_H_
#define LOADLINE_PASSES_REWRITE_H_

#include <optional>
#include <vector>

#include "models/graph.h"

namespace loadline::passes {

// The number in a one-element f32 constant; none for any other value.
std::optional<double> ScalarConstant(const models::Graph& graph,
                                     models::ValueId id);

// Whether gradients flow through the dtype.
bool IsFloat(models::DType dtype);

// Replaces every use of value v (as a node's input, an output of the graph, the
// new contents of an update) by replacement[v], following chains to their end.
// `replacement` has one entry per value; a value that is not replaced maps to
// itself.
void ReplaceUses(models::Graph& graph,
                 const std::vector<models::ValueId>& replacement);
// A replacement for ReplaceUses that changes nothing.
std::vector<models::ValueId> IdentityReplacement(const models::Graph& graph);

// Keeps the nodes marked in `keep` (one entry per node) and drops values that
// only the other nodes made. Ids change as in models::EraseNodes.
void KeepNodes(models::Graph& graph, const std::vector<bool>& keep);

// For each value, whether it is an output of the graph or part of an update.
// Such a value must keep its name.
std::vector<bool> NamedByGraph(const models::Graph& graph);

// For each node, whether a value marked in `needed` (one entry per value)
// depends on it. Also marks what those nodes read.
std::vector<bool> NeededNodes(const models::Graph& graph,
                              std::vector<bool>& needed);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_REWRITE_H_
