// Tested in tests/passes/mask_relu_gradient_test.cc.
#include "passes/mask_relu_gradient.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "models/storage.h"
#include "passes/node_replacer.h"
#include "passes/remove_dead_nodes.h"
#include "passes/rewrite.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::Node;
using models::Phase;
using models::ValueId;

constexpr int64_t kLeastBytes = 4096;

// Outputs of Relu nodes whose only readers after the loss are ReluGrads.
std::vector<bool> FindMaskable(const Graph& graph) {
  const std::vector<ValueId> roots = models::StorageRoots(graph);
  const std::vector<bool> named = NamedByGraph(graph);
  std::vector<bool> has_gradient(graph.values.size(), false);
  std::vector<bool> blocked(graph.values.size(), false);
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (named[v]) blocked[Index(roots[v])] = true;
  }
  for (const Node& node : graph.nodes) {
    if (models::IsView(node)) continue;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      if (id == models::kNoValue) continue;
      const ValueId root = roots[Index(id)];
      if (node.phase == Phase::kForward || node.phase == Phase::kLoss) continue;
      if (node.op == "ReluGrad" && i == 1 && id == root) {
        has_gradient[Index(id)] = true;
      } else {
        blocked[Index(root)] = true;
      }
    }
  }
  std::vector<bool> maskable(graph.values.size(), false);
  for (const Node& node : graph.nodes) {
    if (node.op != "Relu") continue;
    const size_t y = Index(node.outputs[0]);
    maskable[y] = has_gradient[y] && !blocked[y] &&
                  graph.values[y].type.bytes() >= kLeastBytes;
  }
  return maskable;
}

}  // namespace

absl::Status MaskReluGradient(Graph& graph) {
  const std::vector<bool> maskable = FindMaskable(graph);
  if (std::find(maskable.begin(), maskable.end(), true) == maskable.end()) {
    return absl::OkStatus();
  }
  NodeReplacer nodes(graph);
  std::map<ValueId, ValueId> masks;
  for (const Node& node : nodes.old_nodes()) {
    if (node.op == "ReluGrad" && masks.contains(node.inputs[1])) {
      LOADLINE_RETURN_IF_ERROR(
          nodes
              .Make(node, "ReluMaskGrad",
                    {node.inputs[0], masks.at(node.inputs[1])}, {})
              .status());
      nodes.StandsFor(node);
      continue;
    }
    nodes.Keep(node);
    if (node.op != "Relu" || !maskable[Index(node.outputs[0])]) continue;
    LOADLINE_ASSIGN_OR_RETURN(masks[node.outputs[0]],
                              nodes.Make(node, "Encode", {node.outputs[0]},
                                         {{"codec", std::string("positive")}}));
  }
  // The outputs that ReluMaskGrad's own replaced.
  return RemoveDeadNodes(graph);
}

}  // namespace loadline::passes
