// The search is fast and good at about a thousand nodes, or fewer if its work
// is limited: then an edit is worth more if all layers gain by it. Tested in
// coarsen_layers_test.cc.
#include "planner/layers/coarsen_layers.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "planner/layers/expand_layers.h"

namespace loadline::planner {
namespace {

// How many of the equal layers to leave.
int FewOf(const Layers& layers, int64_t work_limit,
          const SearchTuning::Layers& tuning) {
  const int64_t few_nodes =
      std::min(tuning.few_nodes, work_limit / tuning.enough_work_per_node);
  int nodes = 0;  // in alike layers
  for (int layer : layers.node_layer) {
    nodes += layer >= layers.alike_lower && layer < layers.alike_upper;
  }
  const int64_t alike = layers.alike_upper - layers.alike_lower;
  return static_cast<int>(std::clamp<int64_t>(
      few_nodes * alike / nodes, tuning.least_layers, tuning.most_layers));
}

}  // namespace

std::unique_ptr<const CoarseLayers> FindCoarseLayers(
    const Problem& problem, const ProblemIndex& index, int64_t work_limit,
    const SearchTuning::Layers& tuning) {
  const auto node_count = static_cast<int64_t>(problem.nodes.size());
  if (!tuning.enabled ||
      node_count < std::min(tuning.many_nodes,
                            work_limit / tuning.little_work_per_node)) {
    return nullptr;
  }
  std::optional<Layers> layers = FindLayers(problem, index, tuning);
  if (!layers) return nullptr;
  const int alike = layers->alike_upper - layers->alike_lower;
  const int few = FewOf(*layers, work_limit, tuning);
  if (2 * few > alike) return nullptr;
  std::optional<CoarseProblem> shrunk =
      CoarsenProblem(problem, *layers, layers->count - alike + few);
  if (!shrunk || 2 * shrunk->problem.nodes.size() > problem.nodes.size()) {
    return nullptr;
  }
  auto result = std::make_unique<CoarseLayers>();
  result->all = *std::move(layers);
  result->shrunk = *std::move(shrunk);
  for (int blocks : tuning.blocks) {
    result->matches.push_back(
        MatchLayers(result->all, result->shrunk.layers, blocks));
  }
  return result;
}

}  // namespace loadline::planner
