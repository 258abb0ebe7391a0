// A plan names no device. It runs on any device where its workspaces suffice,
// which Load checks; other times only make it slower than predicted. Tested by
// tests/tools/pipeline/load_plan_test.cc.
#include "tools/pipeline/load_plan.h"

#include "absl/strings/str_cat.h"
#include "passes/check_plan_matches.h"
#include "passes/structure.h"
#include "planner/base/status_macros.h"
#include "planner/problem/plan.h"
#include "planner/solve/solve.h"
#include "tools/pipeline/plan_files.h"

namespace loadline::tools {
namespace {

absl::Status In(const std::string& path, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(path, ": ", status.message()));
}

}  // namespace

absl::Status TakePlan(const std::string& plan_path,
                      const std::string& problem_path, PlannedStep* step) {
  if (!problem_path.empty()) {
    LOADLINE_ASSIGN_OR_RETURN(step->problem, ReadProblemFile(problem_path));
    LOADLINE_ASSIGN_OR_RETURN(step->keep_everything,
                              planner::KeepEverything(step->problem));
  }
  LOADLINE_ASSIGN_OR_RETURN(step->plan, ReadPlanFile(plan_path, step->problem));
  if (problem_path.empty() &&
      !planner::IsProblemSha256(step->problem, step->plan.problem_sha256)) {
    LOADLINE_RETURN_IF_ERROR(
        In(plan_path,
           passes::CheckNamedStructure(step->plan.problem_name, step->graph)));
    return absl::FailedPreconditionError(absl::StrCat(
        plan_path,
        ": the plan is for another problem than these flags and this "
        "machine's prices make; give --problem, the file it was made for"));
  }
  return In(plan_path,
            passes::CheckPlanMatches(step->graph, step->problem, step->plan));
}

}  // namespace loadline::tools
