// A Problem with fewer layers of the same kind.
#ifndef LOADLINE_PLANNER_LAYERS_SHRINK_H_
#define LOADLINE_PLANNER_LAYERS_SHRINK_H_

#include <optional>

#include "planner/layers/find_layers.h"
#include "planner/problem/problem.h"

namespace loadline::planner {

// A problem whose middle layers were removed.
struct CoarseProblem {
  Problem problem;
  Layers layers;             // with the roles of the whole problem's layers
  std::vector<int> node_of;  // by node: of the whole problem
  std::vector<int> value_of;
  // By node and value of the whole problem; -1: cut out.
  std::vector<int> node_left, value_left;
};

// Removes layers from the middle of the equal ones until `layers_left` remain;
// nodes that read their values read those of the same role in a layer that
// remains. None if fewer than two equal layers would remain at either end, or
// if the rest is no valid problem.
std::optional<CoarseProblem> CoarsenProblem(const Problem& problem,
                                            const Layers& layers,
                                            int layers_left);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_LAYERS_SHRINK_H_
