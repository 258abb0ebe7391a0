// Tested by tests/tools/pipeline/plan_phases_test.cc and
// tests/end_to_end/recipe_test.cc.
#include "tools/pipeline/plan_phases.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "executor/train/data.h"
#include "executor/train/train.h"
#include "planner/base/status_macros.h"
#include "spdlog/spdlog.h"
#include "tools/pipeline/check_phases.h"
#include "tools/pipeline/load_data.h"
#include "tools/pipeline/plan_request.h"
#include "tools/pipeline/plan_training_step.h"
#include "tools/pipeline/recipe_targets.h"

namespace loadline::tools {

StepFlags FlagsOfRecipe(const passes::Recipe& recipe, StepFlags flags) {
  if (recipe.state_bits != 32) {
    flags.optimizer.state_bits = static_cast<int>(recipe.state_bits);
  }
  return flags;
}

StepFlags FlagsOfPhase(const passes::PhaseModel& model, StepFlags flags) {
  flags.purpose.masks = model.masks;
  for (const passes::QuantizedTensor& tensor : model.quantizers) {
    const std::string name = absl::StrCat(tensor.name, ".log_scale");
    const auto id = model.step_model.Find(name);
    if (id.has_value() &&
        model.step_model.value(*id).kind == models::ValueKind::kParameter) {
      flags.optimizer.no_decay.push_back(name);
    }
  }
  return flags;
}

absl::StatusOr<PlannedStep> PlanPhase(const passes::PhaseModel& model,
                                      StepFlags flags, executor::Device& device,
                                      const std::atomic<bool>* cancel) {
  flags = FlagsOfPhase(model, std::move(flags));
  LOADLINE_ASSIGN_OR_RETURN(PlannedStep step,
                            PoseGraph(model.step_model, flags, device, cancel));
  LOADLINE_ASSIGN_OR_RETURN(
      step.plan, SolveFor(step.problem, flags, step.keep_everything, cancel));
  return step;
}

absl::Status KeepBudgetOf(const PlannedStep& first, StepFlags* flags) {
  if (flags->plan.budget.empty()) return absl::OkStatus();
  LOADLINE_ASSIGN_OR_RETURN(const PlanRequest request,
                            ReadPlanRequest(flags->plan, flags->purpose));
  flags->plan.budget = absl::StrCat(
      first.plan.budget_bytes + ReservedInBudget(first.problem, request.on_gpu),
      "B");
  return absl::OkStatus();
}

absl::StatusOr<PlannedPhases> PlanPhases(models::Graph model,
                                         const passes::Recipe& recipe,
                                         int64_t steps, StepFlags flags,
                                         executor::Device& device,
                                         const std::atomic<bool>* cancel) {
  flags = FlagsOfRecipe(recipe, std::move(flags));
  LOADLINE_RETURN_IF_ERROR(CheckAllPhases(model, recipe, flags).status());
  PlannedPhases planned;
  LOADLINE_ASSIGN_OR_RETURN(
      planned.targets, ResolveTargets(model, recipe, steps, flags, device));
  for (const passes::RecipePhase& phase : passes::PhasesOf(recipe, steps)) {
    LOADLINE_ASSIGN_OR_RETURN(
        const passes::PhaseModel at_start,
        passes::MakePhaseModel(std::move(model), recipe, phase));
    for (size_t e : phase.removed) {
      const auto& left_out = at_start.found[e].left_out;
      planned.left_out.insert(planned.left_out.end(), left_out.begin(),
                              left_out.end());
    }
    if (phase.first_step < phase.end_step) {
      spdlog::info("phase {}: steps from {}", planned.phases.size() + 1,
                   phase.first_step + 1);
      LOADLINE_ASSIGN_OR_RETURN(const PlannedStep step,
                                PlanPhase(at_start, flags, device, cancel));
      if (planned.phases.empty()) {
        LOADLINE_RETURN_IF_ERROR(KeepBudgetOf(step, &flags));
      }
      PhaseRecord record = RecordOf(at_start, phase, step);
      record.number = static_cast<int64_t>(planned.phases.size()) + 1;
      if (!planned.phases.empty()) CountAsIn(planned.phases.front(), &record);
      planned.phases.push_back(std::move(record));
    }
    LOADLINE_ASSIGN_OR_RETURN(
        passes::PrunedGraph pruned,
        passes::RemoveChannels(
            at_start,
            passes::FirstChannels(at_start, recipe, phase, planned.targets)));
    model = std::move(pruned.graph);
  }
  return planned;
}

absl::StatusOr<RecipeClock> ClockFor(const StepFlags& flags,
                                     const models::Graph& model, int64_t steps,
                                     int64_t epochs) {
  RecipeClock clock;
  if (steps > 0) {
    LOADLINE_ASSIGN_OR_RETURN(clock.steps,
                              executor::StepsOfRun(steps, /*epochs=*/0,
                                                   /*steps_per_epoch=*/0));
  }
  if (flags.loss.data.empty()) return clock;
  LOADLINE_ASSIGN_OR_RETURN(const models::Graph graph, BuildStep(model, flags));
  LOADLINE_ASSIGN_OR_RETURN(const executor::DataSet data,
                            LoadDataFor(flags.loss, graph));
  const std::optional<int64_t> batch = executor::BatchOf(graph);
  if (!batch.has_value()) {
    return absl::InvalidArgumentError("the graph has no input with a batch");
  }
  clock.steps_per_epoch = data.examples / *batch;
  if (steps == 0 && epochs > 0) {
    LOADLINE_ASSIGN_OR_RETURN(
        clock.steps, executor::StepsOfRun(0, epochs, clock.steps_per_epoch));
  }
  return clock;
}

}  // namespace loadline::tools
