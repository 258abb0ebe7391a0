// A plan names no device. It runs on any device where its workspaces suffice,
// which Load checks; other times only make it slower than predicted. Tested by
// tests/tools/pipeline/load_plan_test.cc.
#include "tools/pipeline/load_plan.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "passes/check_plan_matches.h"
#include "passes/structure.h"
#include "planner/base/status_macros.h"
#include "planner/problem/plan_header.h"
#include "planner/problem/used_codecs.h"
#include "planner/solve/solve.h"
#include "tools/cli/units.h"
#include "tools/pipeline/files.h"
#include "tools/pipeline/plan_files.h"
#include "tools/pipeline/plan_request.h"

namespace loadline::tools {
namespace {

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

int64_t CountOf(const planner::Plan& plan, planner::StepKind kind) {
  return std::count_if(
      plan.steps.begin(), plan.steps.end(),
      [kind](const planner::Step& step) { return step.kind == kind; });
}

// How many steps run a node that an earlier step has run.
int64_t SecondRuns(const planner::Plan& plan) {
  std::set<planner::NodeId> run;
  int64_t again = 0;
  for (const planner::Step& step : plan.steps) {
    if (step.kind == planner::StepKind::kNode && !run.insert(step.node).second)
      ++again;
  }
  return again;
}

absl::Status CheckBudget(const PlannedStep& step, const PlanRequest& request,
                         const std::string& budget) {
  if (!request.budget.has_value()) return absl::OkStatus();
  if (request.budget->kind == planner::Budget::Kind::kSmallest) {
    return absl::InvalidArgumentError(
        "--budget smallest and --plan: give one of them; the smallest budget "
        "takes a search, and --plan says which plan to run");
  }
  LOADLINE_ASSIGN_OR_RETURN(
      const int64_t bytes,
      RequestedBytes(step.problem, request, step.keep_everything));
  if (step.plan.arena_bytes <= bytes) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the plan takes ", step.plan.arena_bytes, " bytes (",
                   FormatBytes(step.plan.arena_bytes), "), and --budget ",
                   budget, " leaves it ", bytes, " (", FormatBytes(bytes),
                   "); give a larger budget, or plan for this one"));
}

absl::Status CheckPermitted(const planner::Plan& plan, const PlanFlags& flags) {
  const auto forbidden = [](const char* flag, int64_t count,
                            const char* what) -> absl::Status {
    return absl::FailedPreconditionError(
        absl::StrCat("the plan has ", count, what, ", and ", flag,
                     " permits 0; leave the flag out, or plan with it"));
  };
  const int64_t again = SecondRuns(plan);
  if (flags.no_recompute && again > 0) {
    return forbidden("--no-recompute", again, " recomputations");
  }
  const int64_t copies = CountOf(plan, planner::StepKind::kCopy);
  if (flags.no_offload && copies > 0) {
    return forbidden("--no-offload", copies, " copies to and from the host");
  }
  const int64_t codecs = CountOf(plan, planner::StepKind::kEncode);
  if (flags.no_stash && codecs > 0) {
    return forbidden("--no-stash", codecs, " values stored compressed");
  }
  return absl::OkStatus();
}

// Before the plan's lists are read: their ids mean nothing in another problem.
absl::Status CheckMadeFor(const std::string& plan_path,
                          const PlannedStep& step) {
  LOADLINE_ASSIGN_OR_RETURN(const std::string json, ReadFile(plan_path));
  const auto header = planner::PlanHeaderFromJson(json);
  if (!header.ok()) return InFile(plan_path, header.status());
  if (planner::IsProblemSha256(step.problem, header->problem_sha256)) {
    return absl::OkStatus();
  }
  LOADLINE_RETURN_IF_ERROR(
      InFile(plan_path,
             passes::CheckNamedStructure(header->problem_name, step.graph)));
  return absl::FailedPreconditionError(absl::StrCat(
      plan_path,
      ": the plan is for another problem than these flags and this machine's "
      "prices make; give --problem, the file it was made for"));
}

}  // namespace

absl::Status TakePlan(const std::string& plan_path,
                      const std::string& problem_path, const PlanFlags& flags,
                      PlannedStep* step) {
  LOADLINE_ASSIGN_OR_RETURN(const PlanRequest request, ReadPlanRequest(flags));
  if (!problem_path.empty()) {
    LOADLINE_ASSIGN_OR_RETURN(step->problem, ReadProblemFile(problem_path));
    LOADLINE_ASSIGN_OR_RETURN(step->keep_everything,
                              planner::KeepEverything(step->problem));
  } else {
    LOADLINE_RETURN_IF_ERROR(CheckMadeFor(plan_path, *step));
  }
  LOADLINE_ASSIGN_OR_RETURN(step->plan, ReadPlanFile(plan_path, step->problem));
  LOADLINE_RETURN_IF_ERROR(InFile(
      plan_path,
      CheckGradientError(step->problem, step->plan, flags.max_gradient_error)));
  LOADLINE_RETURN_IF_ERROR(
      InFile(plan_path, CheckBudget(*step, request, flags.budget)));
  LOADLINE_RETURN_IF_ERROR(
      InFile(plan_path, CheckPermitted(step->plan, flags)));
  return InFile(plan_path, passes::CheckPlanMatches(step->graph, step->problem,
                                                    step->plan));
}

}  // namespace loadline::tools
