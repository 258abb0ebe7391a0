// A Problem with fewer layers of the same kind.
#ifndef LOADLINE_PLANNER_LAYERS_SHRINK_H_
#define LOADLINE_PLANNER_LAYERS_SHRINK_H_

#include <optional>

#include "planner/layers/find_layers.h"
#include "planner/problem/problem.h"

namespace loadline::planner {

// What is left when layers are cut out of the middle.
struct CoarseProblem {
  Problem problem;
  Layers layers;             // with the roles of the whole problem's layers
  std::vector<int> node_of;  // by node: of the whole problem
  std::vector<int> value_of;
  // By node and value of the whole problem; -1: cut out.
  std::vector<int> node_left, value_left;
};

// Cuts all but `layers_left` layers out of the middle of the alike ones; what
// read their values reads the counterparts' in the layers left. None if fewer
// than two alike layers would stay at either end, or if the rest makes no
// valid problem.
std::optional<CoarseProblem> CoarsenProblem(const Problem& problem,
                                            const Layers& layers,
                                            int layers_left);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_LAYERS_SHRINK_H_
