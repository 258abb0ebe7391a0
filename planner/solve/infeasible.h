// The facts of struct Infeasibility as a status with a payload, and back.
#ifndef LOADLINE_PLANNER_SOLVE_INFEASIBLE_H_
#define LOADLINE_PLANNER_SOLVE_INFEASIBLE_H_

#include <string>

#include "absl/status/status.h"
#include "planner/problem/problem.h"
#include "planner/schedule/search_model.h"
#include "planner/solve/solve.h"

namespace loadline::planner {

// BoundPeak of the model, with ids of its problem.
PeakFloor FloorOf(const SearchModel& model);

// ResourceExhausted with a sentence of numbers and names.
absl::Status InfeasibleError(const Problem& problem,
                             const Infeasibility& facts);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SOLVE_INFEASIBLE_H_
