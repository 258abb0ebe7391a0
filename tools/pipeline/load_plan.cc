// A plan names no device. It runs on any device where its workspaces suffice,
// which Load checks; other times only make it slower than predicted. Tested by
// tests/tools/pipeline/load_plan_test.cc.
#include "tools/pipeline/load_plan.h"

#include "absl/strings/str_cat.h"
#include "passes/check_plan_matches.h"
#include "passes/structure.h"
#include "planner/base/status_macros.h"
#include "planner/problem/plan_header.h"
#include "planner/problem/used_codecs.h"
#include "planner/solve/solve.h"
#include "tools/pipeline/files.h"
#include "tools/pipeline/plan_files.h"

namespace loadline::tools {
namespace {

absl::Status In(const std::string& path, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(path, ": ", status.message()));
}

// What the problem allows is known as a share only, so that a plan which needs
// permission needs it again, by a flag.
absl::Status CheckGradientError(const planner::Problem& problem,
                                const planner::Plan& plan, double most) {
  if (most > 0 || !planner::FiguresOf(problem, plan).lossy) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      "the plan stores values by lossy codecs; allow them with "
      "--max-gradient-error");
}

// Before the plan's lists are read: their ids mean nothing in another problem.
absl::Status CheckMadeFor(const std::string& plan_path,
                          const PlannedStep& step) {
  LOADLINE_ASSIGN_OR_RETURN(const std::string json, ReadFile(plan_path));
  const auto header = planner::PlanHeaderFromJson(json);
  if (!header.ok()) return In(plan_path, header.status());
  if (planner::IsProblemSha256(step.problem, header->problem_sha256)) {
    return absl::OkStatus();
  }
  LOADLINE_RETURN_IF_ERROR(
      In(plan_path,
         passes::CheckNamedStructure(header->problem_name, step.graph)));
  return absl::FailedPreconditionError(absl::StrCat(
      plan_path,
      ": the plan is for another problem than these flags and this machine's "
      "prices make; give --problem, the file it was made for"));
}

}  // namespace

absl::Status TakePlan(const std::string& plan_path,
                      const std::string& problem_path,
                      double max_gradient_error, PlannedStep* step) {
  if (!problem_path.empty()) {
    LOADLINE_ASSIGN_OR_RETURN(step->problem, ReadProblemFile(problem_path));
    LOADLINE_ASSIGN_OR_RETURN(step->keep_everything,
                              planner::KeepEverything(step->problem));
  } else {
    LOADLINE_RETURN_IF_ERROR(CheckMadeFor(plan_path, *step));
  }
  LOADLINE_ASSIGN_OR_RETURN(step->plan, ReadPlanFile(plan_path, step->problem));
  LOADLINE_RETURN_IF_ERROR(
      In(plan_path,
         CheckGradientError(step->problem, step->plan, max_gradient_error)));
  return In(plan_path,
            passes::CheckPlanMatches(step->graph, step->problem, step->plan));
}

}  // namespace loadline::tools
