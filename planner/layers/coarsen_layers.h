// The few layers of a problem that stand for all of them in the search.
#ifndef LOADLINE_PLANNER_LAYERS_COARSEN_LAYERS_H_
#define LOADLINE_PLANNER_LAYERS_COARSEN_LAYERS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "planner/layers/find_layers.h"
#include "planner/layers/shrink.h"

namespace loadline::planner {

struct CoarseLayers {
  Layers all;
  CoarseProblem shrunk;
  // Ways to plan all layers like the few, see MatchLayers.
  std::vector<std::vector<int>> matches;
};

// As many layers as a search of so much work (SolveOptions::work_limit) plans
// well. Null where it plans the whole as well as a few layers of it, if the
// problem has no layers, or if cutting them out of the middle leaves too much.
// Depends on nothing else: one serves every model of the problem.
std::unique_ptr<const CoarseLayers> FindCoarseLayers(const Problem& problem,
                                                     const ProblemIndex& index,
                                                     int64_t work_limit);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_LAYERS_COARSEN_LAYERS_H_
