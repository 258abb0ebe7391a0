// `loadline pose`: writes the planning problem of a training step to a file.
// Tested by tests/end_to_end.
#include <memory>
#include <utility>

#include "CLI/CLI.hpp"
#include "planner/base/status_macros.h"
#include "tools/cli/command.h"
#include "tools/cli/flags.h"
#include "tools/pipeline/choose_structure.h"
#include "tools/pipeline/device.h"
#include "tools/pipeline/files.h"
#include "tools/pipeline/output_paths.h"
#include "tools/pipeline/plan_training_step.h"

namespace loadline::tools {
namespace {

struct PoseVerbFlags {
  StepFlags step;
  std::string out = "-";
};

absl::Status RunPose(const PoseVerbFlags& flags) {
  LOADLINE_RETURN_IF_ERROR(
      CheckOutputPaths(InputPaths(flags.step), {{"-o", flags.out}}));
  LOADLINE_RETURN_IF_ERROR(
      RefuseAuto(flags.step.plan, "a problem is that of one structure"));
  LOADLINE_ASSIGN_OR_RETURN(const auto device,
                            MakeDevice(flags.step.plan.device));
  LOADLINE_ASSIGN_OR_RETURN(models::Imported model, ImportToTrain(flags.step));
  LOADLINE_ASSIGN_OR_RETURN(const models::Graph graph,
                            BuildStep(std::move(model.graph), flags.step));
  LOADLINE_ASSIGN_OR_RETURN(const planner::Machine machine,
                            MachineFor(flags.step, graph, nullptr));
  LOADLINE_ASSIGN_OR_RETURN(
      const planner::Problem problem,
      PoseStep(graph, flags.step.model.model, machine, *device));
  return WriteFile(flags.out, planner::ProblemToJson(problem) + "\n");
}

}  // namespace

VerbBody AddPose(CLI::App* app) {
  auto flags = std::make_shared<PoseVerbFlags>();
  AddModelFlags(app, &flags->step.model);
  AddLossFlags(app, &flags->step.loss);
  AddOptimizerFlags(app, &flags->step.optimizer);
  AddPlanFlags(app, &flags->step.plan);
  AddStructureFlags(app, &flags->step.plan);
  AddOutputFlag(app, &flags->out, "Problem file; - is stdout");
  return [flags] { return RunPose(*flags); };
}

}  // namespace loadline::tools
