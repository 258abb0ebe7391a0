// The order of the sum is that of the updates. Tested in
// tests/passes/add_optimizer_test.cc.
#include "passes/clip_gradients.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "passes/add_optimizer.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::Node;
using models::Phase;
using models::ValueId;

// Takes the optimizer's nodes out of the graph, in order.
std::vector<Node> TakeUpdates(Graph& graph) {
  std::vector<Node> updates, others;
  for (Node& node : graph.nodes) {
    (IsOptimizer(node) ? updates : others).push_back(std::move(node));
  }
  graph.nodes = std::move(others);
  return updates;
}

absl::StatusOr<ValueId> AddFactor(Graph& graph,
                                  const std::vector<Node>& updates,
                                  double max_norm) {
  std::vector<ValueId> squares;
  for (const Node& update : updates) {
    LOADLINE_ASSIGN_OR_RETURN(
        const auto sum,
        graph.AddNode("SumSquares",
                      absl::StrCat(graph.value(update.inputs[0]).name, ".norm"),
                      {update.inputs[1]}, {}, Phase::kBackward));
    squares.push_back(sum[0]);
  }
  if (squares.size() > 1) {
    LOADLINE_ASSIGN_OR_RETURN(
        squares, graph.AddNode("Concat", "clip.norms", squares,
                               {{"axis", int64_t{0}}}, Phase::kBackward));
  }
  LOADLINE_ASSIGN_OR_RETURN(
      const auto factor,
      graph.AddNode("ClipFactor", "clip.factor", squares,
                    {{"max_norm", max_norm}}, Phase::kBackward));
  return factor[0];
}

}  // namespace

absl::Status ClipGradients(Graph& graph, double max_norm) {
  std::vector<Node> updates = TakeUpdates(graph);
  if (updates.empty()) return absl::OkStatus();
  LOADLINE_ASSIGN_OR_RETURN(const ValueId factor,
                            AddFactor(graph, updates, max_norm));
  for (Node& update : updates) {
    update.inputs.resize(FactorInput(update.op), models::kNoValue);
    update.inputs.push_back(factor);
    graph.nodes.push_back(std::move(update));
  }
  return absl::OkStatus();
}

}  // namespace loadline::passes
