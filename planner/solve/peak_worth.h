// Where a plan is short of bytes, and which values wait there.
#ifndef LOADLINE_PLANNER_SOLVE_PEAK_WORTH_H_
#define LOADLINE_PLANNER_SOLVE_PEAK_WORTH_H_

#include <vector>

#include "planner/problem/plan.h"
#include "planner/problem/problem.h"

namespace loadline::planner {

// For each value from 0 to 1: how much of the plan's peak would fall if the
// value were smaller between its uses. Steps count by a high power of the bytes
// alive at them, and a value has the share of the steps at which a buffer of it
// waits on the device and no step reads or writes it. 0: the plan recomputes or
// copies the value rather than keep it where bytes are short.
std::vector<double> WorthAtPeak(const Problem& problem, const Plan& plan);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SOLVE_PEAK_WORTH_H_
