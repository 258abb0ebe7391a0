// `loadline estimate`: memory needs without a search. Tested by
// tests/tools/report/estimate_test.cc.
#include "tools/report/estimate.h"

#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "nlohmann/json.hpp"
#include "planner/base/status_macros.h"
#include "tools/cli/command.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/flags.h"
#include "tools/cli/json_text.h"
#include "tools/cli/standard_output.h"
#include "tools/pipeline/choose_structure.h"
#include "tools/pipeline/plan_training_step.h"
#include "tools/pipeline/planner_file_flags.h"

namespace loadline::tools {
namespace {

struct EstimateVerbFlags {
  StepFlags step;
  bool json = false;
};

absl::Status RunEstimate(const EstimateVerbFlags& flags) {
  LOADLINE_RETURN_IF_ERROR(RefuseAuto(
      flags.step.plan, "takes a search, which an estimate does not make"));
  LOADLINE_ASSIGN_OR_RETURN(const PlannedStep step,
                            PoseOrReadStep(flags.step, /*cancel=*/nullptr));
  LOADLINE_ASSIGN_OR_RETURN(const Estimate estimate,
                            EstimateStep(step, flags.step.plan));
  if (flags.json) {
    Print("{}\n", JsonText(EstimateJson(step, estimate)));
  } else {
    PrintText(EstimateTable(step, estimate));
  }
  if (FitOf(estimate) != Fit::kNever) return absl::OkStatus();
  return CannotFitError(EstimateVerdict(step, estimate));
}

}  // namespace

VerbBody AddEstimate(CLI::App* app) {
  auto flags = std::make_shared<EstimateVerbFlags>();
  AddPlannedStepFlags(app, &flags->step);
  app->get_option("--micro-batches")->description("Number of micro-batches");
  AddJsonFlag(app, &flags->json);
  return [flags] { return RunEstimate(*flags); };
}

}  // namespace loadline::tools
