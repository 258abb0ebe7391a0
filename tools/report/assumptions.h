// The assumptions behind a prediction, as sentences.
#ifndef LOADLINE_TOOLS_REPORT_ASSUMPTIONS_H_
#define LOADLINE_TOOLS_REPORT_ASSUMPTIONS_H_

#include <string>
#include <vector>

#include "planner/problem/problem.h"
#include "tools/pipeline/planned_step.h"

namespace loadline::tools {

// `flags` is null if the problem came from a file.
std::vector<std::string> Assumptions(const planner::Problem& problem,
                                     const StepFlags* flags);

// What a reader of a plan's table has to know about its figures, with a line
// break at the end; empty: nothing.
std::string PlanNote(const PlannedStep& step, const StepFlags& flags);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_REPORT_ASSUMPTIONS_H_
