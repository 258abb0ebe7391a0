// `loadline plan`: from a model (or a problem file) to a verified plan and a
// table of its trade-offs. Tested by tests/end_to_end.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "nlohmann/json.hpp"
#include "planner/base/status_macros.h"
#include "tools/cli/command.h"
#include "tools/cli/flags.h"
#include "tools/cli/help.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json_text.h"
#include "tools/cli/number_checks.h"
#include "tools/cli/reproduce.h"
#include "tools/cli/standard_output.h"
#include "tools/pipeline/choose_structure.h"
#include "tools/pipeline/device.h"
#include "tools/pipeline/files.h"
#include "tools/pipeline/output_paths.h"
#include "tools/pipeline/plan_phases.h"
#include "tools/pipeline/plan_training_step.h"
#include "tools/pipeline/planner_file_flags.h"
#include "tools/pipeline/recipe_file.h"
#include "tools/report/assumptions.h"
#include "tools/report/phases_report.h"
#include "tools/report/plan_summary.h"
#include "tools/report/structure_output.h"

namespace loadline::tools {
namespace {

struct PlanVerbFlags {
  StepFlags step;
  std::string out;
  std::string problem_out;
  std::string recipe;
  int64_t steps = 0;
  bool json = false;
};

// A plan for each phase of the recipe.
absl::Status PlanRecipe(const PlanVerbFlags& flags) {
  if (!flags.out.empty() || !flags.problem_out.empty()) {
    return absl::InvalidArgumentError(
        "-o and --problem with --recipe: each phase has a plan of its own, and "
        "which channels it lacks is not known before training");
  }
  LOADLINE_RETURN_IF_ERROR(CheckOutputPaths(
      InputPaths(flags.step), {{"--json", flags.json ? "-" : ""}}));
  if (IsAuto(flags.step.plan)) {
    return absl::InvalidArgumentError(AutoFlag(flags.step.plan) +
                                      " and --recipe: give one of them");
  }
  if (!flags.step.optimizer.lora.empty()) {
    return absl::InvalidArgumentError("--lora and --recipe: give one of them");
  }
  if (IsPlannerFile(flags.step.model.model)) {
    return absl::InvalidArgumentError("--recipe: needs a model, not a problem");
  }
  const std::atomic<bool>* cancel = CatchInterrupts();
  LOADLINE_ASSIGN_OR_RETURN(models::Imported model, ImportToTrain(flags.step));
  LOADLINE_ASSIGN_OR_RETURN(
      const RecipeClock clock,
      ClockFor(flags.step, model.graph, flags.steps, /*epochs=*/0));
  LOADLINE_ASSIGN_OR_RETURN(const passes::Recipe recipe,
                            ReadRecipeFile(flags.recipe, clock));
  LOADLINE_ASSIGN_OR_RETURN(const auto device,
                            MakeDevice(flags.step.plan.device));
  LOADLINE_ASSIGN_OR_RETURN(
      const PlannedPhases planned,
      PlanPhases(std::move(model.graph), recipe,
                 clock.steps > 0 ? clock.steps : passes::kOpenEnd, flags.step,
                 *device, cancel));
  if (flags.json) {
    nlohmann::ordered_json out = {{"format", "loadline.phases/1"}};
    out.update(PhasesJson(recipe, planned.phases, planned.targets));
    Print("{}\n", JsonText(out));
  } else {
    Print("{}\n{}", PhasesTable(recipe, planned.phases, planned.targets),
          ReproduceWith());
  }
  return absl::OkStatus();
}

absl::Status RunPlan(const PlanVerbFlags& flags) {
  if (!flags.recipe.empty()) return PlanRecipe(flags);
  if (flags.steps > 0) {
    return absl::InvalidArgumentError("--steps: needs --recipe FILE");
  }
  const std::vector<NamedPath> outputs = {{"--problem", flags.problem_out},
                                          {"-o", flags.out},
                                          {"--json", flags.json ? "-" : ""}};
  LOADLINE_RETURN_IF_ERROR(CheckOutputPaths(InputPaths(flags.step), outputs));
  const std::atomic<bool>* cancel = CatchInterrupts();
  LOADLINE_ASSIGN_OR_RETURN(const PlannedStep step,
                            PlanOrReadStep(flags.step, cancel));
  if (!flags.problem_out.empty()) {
    LOADLINE_RETURN_IF_ERROR(WriteFile(
        flags.problem_out, planner::ProblemToJson(step.problem) + "\n"));
  }
  if (!flags.out.empty()) {
    LOADLINE_RETURN_IF_ERROR(WriteFile(
        flags.out, planner::PlanToJson(step.plan, step.problem) + "\n"));
  }
  if (flags.json) {
    nlohmann::ordered_json out = {{"format", "loadline.summary/1"}};
    out.update(PlanSummaryJson(step.problem, step.keep_everything, step.plan));
    AddStructure(step, &out);
    Print("{}\n", JsonText(out));
  } else if (flags.out != "-" && flags.problem_out != "-") {
    const bool is_file = IsPlannerFile(flags.step.model.model);
    Print("{}\n{}{}{}",
          PlanTable(step.problem, step.keep_everything, step.plan),
          StructureText(step), is_file ? "" : PlanNote(step, flags.step),
          ReproduceWith());
  }
  LogWritten(outputs);
  return absl::OkStatus();
}

}  // namespace

VerbBody AddPlan(CLI::App* app) {
  auto flags = std::make_shared<PlanVerbFlags>();
  AddPlannedStepFlags(app, &flags->step);
  AddOutputFlag(app, &flags->out, "Plan file; - is stdout");
  app->add_option("--problem", flags->problem_out,
                  "Also write the problem, for loadline verify")
      ->type_name("FILE")
      ->take_last();
  app->add_option("--recipe", flags->recipe,
                  "Plan each phase of this recipe, .yaml or .json")
      ->type_name("FILE")
      ->take_last();
  app->add_option("--steps", flags->steps,
                  "With --recipe: steps of the whole run")
      ->check(CheckPositive)
      ->take_last()
      ->group(kRareFlags);
  AddJsonFlag(app, &flags->json);
  return [flags] { return RunPlan(*flags); };
}

}  // namespace loadline::tools
