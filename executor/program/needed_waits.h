// Removes waits of a plan that other waits imply.
#ifndef LOADLINE_EXECUTOR_PROGRAM_NEEDED_WAITS_H_
#define LOADLINE_EXECUTOR_PROGRAM_NEEDED_WAITS_H_

#include <cstddef>
#include <vector>

#include "planner/problem/plan.h"

namespace loadline::executor {

// By step: the steps of other lanes that it must wait for, without those known
// to have ended through earlier waits of its lane or the waits of those steps.
// The plan's happens-before relation is unchanged. `order`: all steps, each
// after its predecessors on the lane and after the steps that it waits for.
std::vector<std::vector<planner::StepId>> NeededWaits(
    const planner::Plan& plan, const std::vector<size_t>& order);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_PROGRAM_NEEDED_WAITS_H_
