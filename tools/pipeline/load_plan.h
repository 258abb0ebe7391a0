// Runs a plan that was made elsewhere.
#ifndef LOADLINE_TOOLS_PIPELINE_LOAD_PLAN_H_
#define LOADLINE_TOOLS_PIPELINE_LOAD_PLAN_H_

#include <string>

#include "absl/status/status.h"
#include "tools/pipeline/planned_step.h"

namespace loadline::tools {

// Replaces the plan of `step` by a file's, and its problem too if a file is
// given. `flags`: what the plan may take and do. FailedPrecondition, naming the
// file: the plan does not belong to this step, or does what the flags forbid.
// InvalidArgument: flags that say nothing of a given plan.
// (Load reports kernels that need more workspace than the plan has.)
absl::Status TakePlan(const std::string& plan_path,
                      const std::string& problem_path, const PlanFlags& flags,
                      PlannedStep* step);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_LOAD_PLAN_H_
