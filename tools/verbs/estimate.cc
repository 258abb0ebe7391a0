// `loadline estimate`: does it fit, without a search. Tested by
// tests/tools/estimate_test.cc.
#include "tools/estimate.h"

#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "planner/status_macros.h"
#include "tools/command.h"
#include "tools/exit_code.h"
#include "tools/flags.h"
#include "tools/json_text.h"
#include "tools/way.h"

namespace loadline::tools {
namespace {

struct Flags {
  StepFlags step;
  bool json = false;
};

absl::Status RunEstimate(const Flags& flags) {
  LOADLINE_ASSIGN_OR_RETURN(const PlannedStep step,
                            PoseOrReadStep(flags.step, /*cancel=*/nullptr));
  LOADLINE_ASSIGN_OR_RETURN(const Estimate estimate,
                            EstimateStep(step, flags.step.plan));
  if (flags.json) {
    fmt::print("{}\n", JsonText(EstimateJson(step, estimate)));
  } else {
    fmt::print("{}", EstimateTable(step, estimate));
  }
  if (FitOf(estimate) != Fit::kNever) return absl::OkStatus();
  return CannotFitError(EstimateVerdict(step, estimate));
}

}  // namespace

VerbBody AddEstimate(CLI::App* app) {
  auto flags = std::make_shared<Flags>();
  AddPlannedModelFlags(app, &flags->step.model);
  AddLossFlags(app, &flags->step.loss);
  AddOptimizerFlags(app, &flags->step.optimizer);
  AddPlanFlags(app, &flags->step.plan);
  AddJsonFlag(app, &flags->json);
  return [flags] { return RunEstimate(*flags); };
}

}  // namespace loadline::tools
