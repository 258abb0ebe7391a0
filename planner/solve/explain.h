// One short sentence for every value of a plan: what was done with it and why.
#ifndef LOADLINE_PLANNER_SOLVE_EXPLAIN_H_
#define LOADLINE_PLANNER_SOLVE_EXPLAIN_H_

#include <vector>

#include "planner/problem/plan.h"
#include "planner/schedule/schedule.h"

namespace loadline::planner {

// Requires a valid schedule. One decision per value that has a buffer.
std::vector<Decision> Explain(const SearchModel& model,
                              const Schedule& schedule);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SOLVE_EXPLAIN_H_
