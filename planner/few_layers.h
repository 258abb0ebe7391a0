// The few layers of a problem that stand for all of them in the search.
#ifndef LOADLINE_PLANNER_FEW_LAYERS_H_
#define LOADLINE_PLANNER_FEW_LAYERS_H_

#include <memory>
#include <vector>

#include "planner/layers.h"
#include "planner/shrink.h"

namespace loadline::planner {

struct FewLayers {
  Layers all;
  Shrunk shrunk;
  // Ways to plan all layers like the few, see MatchLayers.
  std::vector<std::vector<int>> matches;
};

// As many layers as the search plans quickly and well. Null if the problem has
// no layers, or if cutting them out of the middle leaves too much. Depends on
// the problem alone: one serves every model of it.
std::unique_ptr<const FewLayers> FindFewLayers(const Problem& problem,
                                               const ProblemIndex& index);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_FEW_LAYERS_H_
