// One backward pass: a node is live if one of its outputs is needed, and then
// its inputs are needed. Tested in tests/passes/simplify_test.cc.
#include "passes/remove_dead_nodes.h"

#include <vector>

#include "passes/rewrite.h"

namespace loadline::passes {

absl::Status RemoveDeadNodes(models::Graph& graph) {
  std::vector<bool> needed = NamedByGraph(graph);
  std::vector<bool> keep(graph.nodes.size(), false);
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const models::Node& node = graph.nodes[i];
    for (models::ValueId id : node.outputs) {
      if (needed[Index(id)]) keep[i] = true;
    }
    if (!keep[i]) continue;
    for (models::ValueId id : node.inputs) {
      if (id != models::kNoValue) needed[Index(id)] = true;
    }
  }
  KeepNodes(graph, keep);
  return absl::OkStatus();
}

}  // namespace loadline::passes
