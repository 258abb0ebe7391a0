// What the search minimises, of finished plans.
#ifndef LOADLINE_PLANNER_SOLVE_OBJECTIVE_H_
#define LOADLINE_PLANNER_SOLVE_OBJECTIVE_H_

#include <cstdint>

#include "planner/problem/plan.h"
#include "planner/problem/problem.h"

namespace loadline::planner {

// The predicted step and Machine::switch_ns for each copy: the one price of a
// copy's calls, by which the search also decides between copying, recomputing
// and neither.
int64_t ObjectiveNs(const Problem& problem, const Plan& plan);

// A plan for a smaller budget also fits a larger one: where `smaller` has the
// smaller objective, `plan` gets its steps and keeps its own budget and bounds.
// Whether it did.
bool TakeFaster(const Problem& problem, const Plan& smaller, Plan* plan);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SOLVE_OBJECTIVE_H_
