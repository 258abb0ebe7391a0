// Tested by tests/end_to_end/training_test.cc.
#include "tools/pipeline/load_evaluation.h"

#include <utility>

#include "passes/training_pipeline.h"
#include "planner/base/status_macros.h"
#include "planner/solve/solve.h"
#include "tools/pipeline/device.h"
#include "tools/pipeline/import_model.h"
#include "tools/pipeline/loss_options.h"
#include "tools/pipeline/plan_request.h"
#include "tools/pipeline/plan_training_step.h"

namespace loadline::tools {

absl::StatusOr<std::unique_ptr<LoadedEvaluation>> LoadEvaluation(
    const ModelFlags& model, const LossFlags& loss, const PlanFlags& plan) {
  auto loaded = std::make_unique<LoadedEvaluation>();
  LOADLINE_ASSIGN_OR_RETURN(loaded->device, MakeDevice(plan.device));
  LOADLINE_ASSIGN_OR_RETURN(models::Imported imported,
                            ImportModel(model, /*training=*/false));
  LOADLINE_ASSIGN_OR_RETURN(passes::LossOptions loss_options,
                            LossFor(imported.graph, loss, model.model));
  WarnOfLoss(imported.graph, loss);
  loaded->model = imported.graph;
  LOADLINE_ASSIGN_OR_RETURN(
      loaded->graph,
      passes::BuildEvaluation(std::move(imported.graph), loss_options, {}));
  StepFlags step;
  step.plan = plan;
  step.purpose.runs_here = true;
  LOADLINE_ASSIGN_OR_RETURN(
      const planner::Machine machine,
      MachineFor(step, loaded->graph, /*cancel=*/nullptr));
  LOADLINE_ASSIGN_OR_RETURN(
      loaded->problem,
      PoseStep(loaded->graph, model.model, machine, *loaded->device));
  LOADLINE_ASSIGN_OR_RETURN(const planner::Plan keep,
                            planner::KeepEverything(loaded->problem));
  LOADLINE_ASSIGN_OR_RETURN(loaded->plan,
                            SolveFor(loaded->problem, step, keep, nullptr));
  LOADLINE_ASSIGN_OR_RETURN(loaded->program,
                            executor::Load(loaded->graph, loaded->problem,
                                           loaded->plan, *loaded->device));
  return loaded;
}

}  // namespace loadline::tools
