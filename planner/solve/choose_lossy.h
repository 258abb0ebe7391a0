// Which lossy codecs a search may use, where a problem limits their errors.
#ifndef LOADLINE_PLANNER_SOLVE_CHOOSE_LOSSY_H_
#define LOADLINE_PLANNER_SOLVE_CHOOSE_LOSSY_H_

#include "planner/problem/problem.h"

namespace loadline::planner {

// The problem with at most one lossy codec per value left, and so few that
// their errors together are within `max_error`, which the result does not have:
// every plan of it is a plan of `problem`, except for its hash. The rest of the
// problem, and every id, is the same.
Problem ChooseLossy(const Problem& problem);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SOLVE_CHOOSE_LOSSY_H_
