// The few layers of a problem that represent all of them in the search.
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
  // By number of blocks: which few layer each layer is planned like (see
  // MatchLayers).
  std::vector<std::vector<int>> matches;
};

// As many layers as a search of so much work (SolveOptions::work_limit) plans
// well. Null if it plans the whole problem as well, if the problem has no
// layers, or if removing layers from the middle leaves too much. Independent of
// permissions: one serves every model of the problem.
std::unique_ptr<const CoarseLayers> FindCoarseLayers(
    const Problem& problem, const ProblemIndex& index, int64_t work_limit,
    const SearchTuning::Layers& tuning = {});

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_LAYERS_COARSEN_LAYERS_H_
