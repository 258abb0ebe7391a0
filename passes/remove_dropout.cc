// A dropout that drops nothing equals its input. If it was an output of the
// graph, the output gets the input's name. Tested in
// tests/passes/simplify_test.cc.
#include "passes/remove_dropout.h"

#include <vector>

#include "passes/rewrite.h"

namespace loadline::passes {

absl::Status RemoveDropout(models::Graph& graph, Dropouts which) {
  std::vector<models::ValueId> replacement = IdentityReplacement(graph);
  std::vector<bool> keep(graph.nodes.size(), true);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const models::Node& node = graph.nodes[i];
    if (node.op != "Dropout") continue;
    if (which == Dropouts::kOfRatioZero &&
        node.attributes.Float("ratio", 0.5) != 0) {
      continue;
    }
    replacement[Index(node.outputs[0])] = node.inputs[0];
    keep[i] = false;
  }
  ReplaceUses(graph, replacement);
  KeepNodes(graph, keep);
  return absl::OkStatus();
}

}  // namespace loadline::passes
