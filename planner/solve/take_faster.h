// A plan of a smaller budget in place of a slower one.
#ifndef LOADLINE_PLANNER_SOLVE_TAKE_FASTER_H_
#define LOADLINE_PLANNER_SOLVE_TAKE_FASTER_H_

#include "planner/problem/plan.h"

namespace loadline::planner {

// A plan for a smaller budget also fits a larger one: where `smaller` is
// predicted to be faster, `plan` gets its steps and keeps its own budget and
// bounds. Whether it did.
bool TakeFaster(const Plan& smaller, Plan* plan);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SOLVE_TAKE_FASTER_H_
