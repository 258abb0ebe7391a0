// A plan names no device, and needs none where workspaces suffice: what else a
// device could differ in, prices, makes a plan slower and not wrong. Tested by
// tests/tools/foreign_plan_test.cc.
#include "tools/foreign_plan.h"

#include "absl/strings/str_cat.h"
#include "models/storage.h"
#include "passes/apply.h"
#include "planner/plan.h"
#include "planner/solve.h"
#include "planner/status_macros.h"
#include "tools/plan_files.h"

namespace loadline::tools {
namespace {

absl::Status CheckWorkspaces(const PlannedStep& step,
                             executor::Device& device) {
  int64_t lacking = 0;
  std::string first;
  for (const planner::Node& planned : step.problem.nodes) {
    const models::Node& node =
        step.graph.node(static_cast<models::NodeId>(planned.file_id));
    LOADLINE_ASSIGN_OR_RETURN(const auto kernel,
                              device.Prepare(step.graph, node));
    if (kernel->workspace_bytes() <= planned.workspace_bytes) continue;
    if (lacking++ > 0) continue;
    first =
        absl::StrCat(node.name, " (", node.op, ") ", kernel->workspace_bytes(),
                     " bytes, not ", planned.workspace_bytes);
  }
  if (lacking == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the plan was made for another device (machine '",
      step.problem.machine.has_value() ? step.problem.machine->name : "",
      "'): on --device ", std::string(device.name()), " ", lacking, " of ",
      step.problem.nodes.size(), " nodes need more workspace, ", first,
      "; plan again with this --device, or leave out --plan"));
}

absl::Status In(const std::string& path, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(path, ": ", status.message()));
}

}  // namespace

absl::Status TakePlan(const std::string& plan_path,
                      const std::string& problem_path, executor::Device& device,
                      PlannedStep* step) {
  if (!problem_path.empty()) {
    LOADLINE_ASSIGN_OR_RETURN(step->problem, ReadProblemFile(problem_path));
    LOADLINE_ASSIGN_OR_RETURN(step->keep_everything,
                              planner::KeepEverything(step->problem));
  }
  LOADLINE_ASSIGN_OR_RETURN(step->plan, ReadPlanFile(plan_path, step->problem));
  if (problem_path.empty() &&
      step->plan.problem_sha256 != planner::ProblemSha256(step->problem)) {
    return absl::FailedPreconditionError(absl::StrCat(
        plan_path,
        ": the plan is for another problem than these flags and this "
        "machine's prices make; give --problem, the file it was made for"));
  }
  LOADLINE_RETURN_IF_ERROR(
      In(plan_path, passes::Apply(step->graph, step->problem, step->plan)));
  return In(plan_path, CheckWorkspaces(*step, device));
}

}  // namespace loadline::tools
