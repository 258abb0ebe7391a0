// Where a plan is short of bytes, and which values wait there.
#ifndef LOADLINE_PLANNER_SOLVE_PEAK_WORTH_H_
#define LOADLINE_PLANNER_SOLVE_PEAK_WORTH_H_

#include <vector>

#include "planner/problem/plan.h"
#include "planner/problem/problem.h"

namespace loadline::planner {

// For each value from 0 to 1: how much of the plan's peak would fall if the
// value were smaller between its uses. A step's weight is a high power of the
// bytes that are alive during it. A value's worth is its share of the weight:
// that of the steps during which one of its buffers is on the device, and is
// neither read nor written. 0: where bytes are short, the plan recomputes or
// copies the value.
std::vector<double> WorthAtPeak(const Problem& problem, const Plan& plan);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SOLVE_PEAK_WORTH_H_
