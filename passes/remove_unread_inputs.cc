// Tested in tests/passes/simplify_test.cc.
#include "passes/remove_unread_inputs.h"

#include <algorithm>
#include <vector>

namespace loadline::passes {

using models::Graph;
using models::ValueId;

std::vector<ValueId> InputsRead(const Graph& graph,
                                const std::vector<ValueId>& outputs) {
  std::vector<bool> needed(graph.values.size(), false);
  const auto need = [&](ValueId id) {
    if (id != models::kNoValue) needed[Index(id)] = true;
  };
  for (ValueId id : outputs) need(id);
  for (const auto& [state, next] : graph.updates) need(next);
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const models::Node& node = graph.nodes[i];
    if (std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
          return id != models::kNoValue && needed[Index(id)];
        })) {
      for (ValueId id : node.inputs) need(id);
    }
  }
  std::vector<ValueId> read;
  for (ValueId id : graph.inputs) {
    if (needed[Index(id)]) read.push_back(id);
  }
  return read.empty() ? graph.inputs : read;
}

absl::Status RemoveUnreadInputs(Graph& graph) {
  const std::vector<ValueId> read = InputsRead(graph, graph.outputs);
  if (read.size() == graph.inputs.size()) return absl::OkStatus();
  std::vector<bool> unread(graph.values.size(), false);
  for (ValueId id : graph.inputs) {
    if (std::find(read.begin(), read.end(), id) != read.end()) continue;
    unread[Index(id)] = true;
    // EraseNodes drops such a value with its readers.
    graph.value(id).kind = models::ValueKind::kIntermediate;
  }
  graph.inputs = read;
  std::vector<bool> dead(graph.nodes.size(), false);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (ValueId id : graph.nodes[n].inputs) {
      dead[n] = dead[n] || (id != models::kNoValue && unread[Index(id)]);
    }
    if (!dead[n]) continue;
    for (ValueId id : graph.nodes[n].outputs) {
      if (id != models::kNoValue) unread[Index(id)] = true;
    }
  }
  models::EraseNodes(&graph, dead);
  return absl::OkStatus();
}

}  // namespace loadline::passes
