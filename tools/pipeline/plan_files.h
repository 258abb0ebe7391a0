// Problems, plans and machine profiles as files. Every error names its file.
#ifndef LOADLINE_TOOLS_PIPELINE_PLAN_FILES_H_
#define LOADLINE_TOOLS_PIPELINE_PLAN_FILES_H_

#include <string>

#include "absl/status/statusor.h"
#include "planner/problem/machine.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"

namespace loadline::tools {

// Errors: those of ReadFile, and of the format's reader.
absl::StatusOr<planner::Problem> ReadProblemFile(const std::string& path);
absl::StatusOr<planner::Plan> ReadPlanFile(const std::string& path,
                                           const planner::Problem& problem);
absl::StatusOr<planner::Machine> ReadMachineFile(const std::string& path);

// FailedPrecondition "PATH: not valid: ..." unless Verify accepts the plan.
// NamedVerdict makes this error from Verify's.
absl::Status NamedVerdict(const std::string& path, const absl::Status& verdict);
absl::Status VerifyPlanFile(const std::string& path,
                            const planner::Problem& problem,
                            const planner::Plan& plan);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_PLAN_FILES_H_
