// One backward pass: a node is live if one of its outputs is needed, and then
// its inputs are needed. Tested in tests/passes/simplify_test.cc.
#include "passes/remove_dead_nodes.h"

#include <vector>

#include "passes/rewrite.h"

namespace loadline::passes {

absl::Status RemoveDeadNodes(models::Graph& graph) {
  std::vector<bool> needed = NamedByGraph(graph);
  KeepNodes(graph, NeededNodes(graph, needed));
  return absl::OkStatus();
}

}  // namespace loadline::passes
