// From a schedule of all layers to one of a few.
#ifndef LOADLINE_PLANNER_LAYERS_RESTRICT_LAYERS_H_
#define LOADLINE_PLANNER_LAYERS_RESTRICT_LAYERS_H_

#include <optional>
#include <vector>

#include "planner/layers/expand_layers.h"

namespace loadline::planner {

// For each of the few layers, the items of one layer (the first in `match`).
// None if the result is not valid.
std::optional<Schedule> RestrictSchedule(const LayeredModel& all,
                                         const LayeredModel& few,
                                         const CoarseProblem& shrunk,
                                         const std::vector<int>& match,
                                         const Schedule& schedule);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_LAYERS_RESTRICT_LAYERS_H_
