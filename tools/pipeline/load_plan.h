// Running a plan that was made somewhere else.
#ifndef LOADLINE_TOOLS_PIPELINE_LOAD_PLAN_H_
#define LOADLINE_TOOLS_PIPELINE_LOAD_PLAN_H_

#include <string>

#include "absl/status/status.h"
#include "tools/pipeline/planned_step.h"

namespace loadline::tools {

// Puts the plan of a file in place of the one made here, and its problem,
// where one is given, in place of the one posed here. FailedPrecondition,
// naming the file: it is no plan of this step. (That kernels of another device
// may want more workspace than it gives them, Load finds.)
absl::Status TakePlan(const std::string& plan_path,
                      const std::string& problem_path, PlannedStep* step);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_LOAD_PLAN_H_
