// Tested in tests/passes/simplify_test.cc.
#include "passes/remove_unread_inputs.h"

#include <algorithm>
#include <vector>

#include "passes/remove_dead_nodes.h"
#include "passes/rewrite.h"

namespace loadline::passes {

using models::Graph;
using models::ValueId;

std::vector<ValueId> InputsRead(const Graph& graph,
                                const std::vector<ValueId>& outputs) {
  std::vector<bool> needed(graph.values.size(), false);
  for (ValueId id : outputs) needed[Index(id)] = true;
  for (const auto& [state, next] : graph.updates) needed[Index(next)] = true;
  NeededNodes(graph, needed);
  std::vector<ValueId> read;
  for (ValueId id : graph.inputs) {
    if (needed[Index(id)]) read.push_back(id);
  }
  return read.empty() ? graph.inputs : read;
}

absl::Status RemoveUnreadInputs(Graph& graph) {
  const std::vector<ValueId> read = InputsRead(graph, graph.outputs);
  if (read.size() == graph.inputs.size()) return absl::OkStatus();
  for (ValueId id : graph.inputs) {
    if (std::find(read.begin(), read.end(), id) != read.end()) continue;
    // Dropped with the dead nodes that read it.
    graph.value(id).kind = models::ValueKind::kIntermediate;
  }
  graph.inputs = read;
  return RemoveDeadNodes(graph);
}

}  // namespace loadline::passes
