// One search for a plan; solve.h repeats it where an effort asks for that.
#ifndef LOADLINE_PLANNER_SOLVE_PLAN_SEARCH_H_
#define LOADLINE_PLANNER_SOLVE_PLAN_SEARCH_H_

#include "absl/status/statusor.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"
#include "planner/schedule/search_model.h"
#include "planner/solve/effort.h"
#include "planner/solve/solve.h"

namespace loadline::planner {

SearchModelOptions ModelOptions(const SolveOptions& options);

// A plan within options.budget_bytes: an order that fits without any overhead;
// else the bisection to the budget (budget_bisection.h), with the policy's
// retries. `problem` and `options` must be valid. The plan is complete
// (complete_plan.h). Errors are those of Solve.
absl::StatusOr<Plan> SearchPlan(const Problem& problem,
                                const SolveOptions& options,
                                const EffortPolicy& policy);

// The plan of the fewest bytes that a search finds.
absl::StatusOr<Plan> SearchSmallestPlan(const Problem& problem,
                                        const SolveOptions& options,
                                        const EffortPolicy& policy);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SOLVE_PLAN_SEARCH_H_
