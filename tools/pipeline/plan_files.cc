// Readers report what is wrong; this adds the file's name. Tested by
// tests/tools/pipeline/plan_files_test.cc.
#include "tools/pipeline/plan_files.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/verify/verify.h"
#include "tools/pipeline/files.h"

namespace loadline::tools {
absl::StatusOr<planner::Problem> ReadProblemFile(const std::string& path,
                                                 absl::string_view remedy) {
  LOADLINE_ASSIGN_OR_RETURN(const std::string json, ReadFile(path));
  auto problem = planner::ProblemFromJson(json);
  if (!problem.ok() &&
      absl::StrContains(json.substr(0, 200), "loadline.plan/")) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is a plan; ", remedy,
                     " (loadline plan ... --problem FILE writes it)"));
  }
  if (!problem.ok()) return InFile(path, problem.status());
  return problem;
}

absl::StatusOr<planner::Plan> ReadPlanFile(const std::string& path,
                                           const planner::Problem& problem) {
  LOADLINE_ASSIGN_OR_RETURN(const std::string json, ReadFile(path));
  auto plan = planner::PlanFromJson(json, problem);
  if (!plan.ok()) return InFile(path, plan.status());
  return plan;
}

absl::StatusOr<planner::Machine> ReadMachineFile(const std::string& path) {
  LOADLINE_ASSIGN_OR_RETURN(const std::string json, ReadFile(path));
  auto machine = planner::MachineFromJson(json);
  if (!machine.ok()) return InFile(path, machine.status());
  return machine;
}

absl::Status NamedVerdict(const std::string& path,
                          const absl::Status& verdict) {
  if (verdict.ok()) return verdict;
  return absl::FailedPreconditionError(
      absl::StrCat(path, ": not valid: ", verdict.message()));
}

absl::Status VerifyPlanFile(const std::string& path,
                            const planner::Problem& problem,
                            const planner::Plan& plan) {
  return NamedVerdict(path, planner::Verify(problem, plan));
}

}  // namespace loadline::tools
