// The search is quick and good at about a thousand nodes, at fewer where its
// work is limited: then every edit is worth more if all layers gain by it.
// Tested in find_layers_test.cc.
#include "planner/layers/coarsen_layers.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "planner/layers/expand_layers.h"

namespace loadline::planner {
namespace {

// From so many nodes on, or with so little work for each, the whole is not
// searched. At the default limit of ten million the first decides.
constexpr int64_t kManyNodes = 3000;
constexpr int64_t kLittleWorkPerNode = 1000;
// Nodes to leave, fewer where the search would not have so much work for each.
constexpr int64_t kFewNodes = 1200;
constexpr int64_t kEnoughWorkPerNode = 8000;
constexpr int kFewLayers = 8, kMostLayers = 100;
constexpr int kBlocks[] = {1, 2, 4};

// How many of the alike layers to leave.
int FewOf(const Layers& layers, int64_t work_limit) {
  const int64_t few_nodes =
      std::min(kFewNodes, work_limit / kEnoughWorkPerNode);
  int nodes = 0;  // in alike layers
  for (int layer : layers.node_layer) {
    nodes += layer >= layers.alike_lower && layer < layers.alike_upper;
  }
  const int64_t alike = layers.alike_upper - layers.alike_lower;
  return static_cast<int>(
      std::clamp<int64_t>(few_nodes * alike / nodes, kFewLayers, kMostLayers));
}

}  // namespace

std::unique_ptr<const CoarseLayers> FindCoarseLayers(const Problem& problem,
                                                     const ProblemIndex& index,
                                                     int64_t work_limit) {
  const auto node_count = static_cast<int64_t>(problem.nodes.size());
  if (node_count < std::min(kManyNodes, work_limit / kLittleWorkPerNode)) {
    return nullptr;
  }
  std::optional<Layers> layers = FindLayers(problem, index);
  if (!layers) return nullptr;
  const int alike = layers->alike_upper - layers->alike_lower;
  const int few = FewOf(*layers, work_limit);
  if (2 * few > alike) return nullptr;
  std::optional<CoarseProblem> shrunk =
      CoarsenProblem(problem, *layers, layers->count - alike + few);
  if (!shrunk || 2 * shrunk->problem.nodes.size() > problem.nodes.size()) {
    return nullptr;
  }
  auto result = std::make_unique<CoarseLayers>();
  result->all = *std::move(layers);
  result->shrunk = *std::move(shrunk);
  for (int blocks : kBlocks) {
    result->matches.push_back(
        MatchLayers(result->all, result->shrunk.layers, blocks));
  }
  return result;
}

}  // namespace loadline::planner
