// A plan against the bounds that are written into it.
#ifndef LOADLINE_PLANNER_SOLVE_CHECK_BOUNDS_H_
#define LOADLINE_PLANNER_SOLVE_CHECK_BOUNDS_H_

#include "absl/status/status.h"
#include "planner/problem/plan.h"

namespace loadline::planner {

// OK unless the plan's own prediction refutes its bounds: one is above what the
// plan reaches, or (`no_plan`) no plan was said to exist. Exact, where Verify
// allows for rounding. Internal: then a bound is wrong, and must not be used.
absl::Status CheckBounds(const Plan& plan, bool no_plan);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SOLVE_CHECK_BOUNDS_H_
