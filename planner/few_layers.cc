// About a thousand nodes: the search is quick and good at that size. Tested in
// layers_test.cc.
#include "planner/few_layers.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "planner/stitch.h"

namespace loadline::planner {
namespace {

constexpr int kFewNodes = 1200;
constexpr int kFewLayers = 8, kMostLayers = 100;
constexpr int kBlocks[] = {1, 2, 4};

// How many of the alike layers to leave.
int FewOf(const Layers& layers) {
  int nodes = 0;  // in alike layers
  for (int layer : layers.node_layer) {
    nodes += layer >= layers.alike_lower && layer < layers.alike_upper;
  }
  const int64_t alike = layers.alike_upper - layers.alike_lower;
  return static_cast<int>(
      std::clamp<int64_t>(kFewNodes * alike / nodes, kFewLayers, kMostLayers));
}

}  // namespace

std::unique_ptr<const FewLayers> FindFewLayers(const Problem& problem,
                                               const ProblemIndex& index) {
  std::optional<Layers> layers = FindLayers(problem, index);
  if (!layers) return nullptr;
  const int alike = layers->alike_upper - layers->alike_lower;
  const int few = FewOf(*layers);
  if (2 * few > alike) return nullptr;
  std::optional<Shrunk> shrunk =
      Shrink(problem, *layers, layers->count - alike + few);
  if (!shrunk || 2 * shrunk->problem.nodes.size() > problem.nodes.size()) {
    return nullptr;
  }
  auto result = std::make_unique<FewLayers>();
  result->all = *std::move(layers);
  result->shrunk = *std::move(shrunk);
  for (int blocks : kBlocks) {
    result->matches.push_back(
        MatchLayers(result->all, result->shrunk.layers, blocks));
  }
  return result;
}

}  // namespace loadline::planner
