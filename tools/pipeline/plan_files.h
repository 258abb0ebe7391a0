// Problems, plans and machine profiles as files. Every error names its file.
#ifndef LOADLINE_TOOLS_PIPELINE_PLAN_FILES_H_
#define LOADLINE_TOOLS_PIPELINE_PLAN_FILES_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/problem/machine.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"

namespace loadline::tools {

// Errors: those of ReadFile, and of the format's reader. `remedy`: where the
// problem is given, said of a file that is a plan.
absl::StatusOr<planner::Problem> ReadProblemFile(
    const std::string& path,
    absl::string_view remedy =
        "give the problem that it is for with --problem FILE");
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
