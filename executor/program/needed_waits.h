// Which waits of a plan a device has to be told.
#ifndef LOADLINE_EXECUTOR_PROGRAM_NEEDED_WAITS_H_
#define LOADLINE_EXECUTOR_PROGRAM_NEEDED_WAITS_H_

#include <cstddef>
#include <vector>

#include "planner/problem/plan.h"

namespace loadline::executor {

// By step: the steps of other lanes that it waits for and that are not known to
// have ended by what its lane has waited for before, or by what those waited
// for. The plan's happens-before stays as it is. `order`: all steps, each
// behind those of its lane and those that it waits for.
std::vector<std::vector<planner::StepId>> NeededWaits(
    const planner::Plan& plan, const std::vector<size_t>& order);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_PROGRAM_NEEDED_WAITS_H_
