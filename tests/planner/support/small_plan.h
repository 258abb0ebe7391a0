// Hand-made problems and plans of a few steps, to start tests from.
#ifndef LOADLINE_TESTS_PLANNER_SUPPORT_SMALL_PLAN_H_
#define LOADLINE_TESTS_PLANNER_SUPPORT_SMALL_PLAN_H_

#include "planner/problem/plan.h"
#include "planner/problem/problem.h"

namespace loadline::planner {

// A weight w (value 0) and data x (value 1), 100 bytes each:
//   node 0 forward: x, w -> y (2, output, 100 bytes, stash "half" of 50 bytes)
//   node 1 grad:    y    -> g (3, 100 bytes), 10 bytes of workspace
//   node 2 update:  g, w -> w' (4), in place, runs once
// Times 1000, 2000, 3000 ns; alignment 100. Copies at 1 byte per ns out, 2
// back, 100 ns of latency, half rate when both lanes move.
Problem SmallProblem();

// Valid: forward; d2h of y to the host; h2d back to a new buffer while the
// first stays; grad reads the new one; update in place.
//   buffers 0 w @0, 1 x @100, 2 y @200, 3 y on the host @0, 4 y back @300,
//           5 g @400, 6 workspace @500, 7 w' @0
//   steps   0 forward, 1 d2h [0], 2 h2d [1], 3 grad [2], 4 update
Plan SmallPlan(const Problem& problem);

}  // namespace loadline::planner

#endif  // LOADLINE_TESTS_PLANNER_SUPPORT_SMALL_PLAN_H_
