// `loadline plan`: from a model (or a problem file) to a verified plan and a
// table of its trade-offs. Tested by tests/end_to_end.
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "nlohmann/json.hpp"
#include "planner/base/status_macros.h"
#include "tools/cli/command.h"
#include "tools/cli/flags.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json_text.h"
#include "tools/cli/reproduce.h"
#include "tools/cli/standard_output.h"
#include "tools/pipeline/files.h"
#include "tools/pipeline/output_paths.h"
#include "tools/pipeline/plan_training_step.h"
#include "tools/report/plan_summary.h"
#include "tools/report/structure_output.h"

namespace loadline::tools {
namespace {

struct Flags {
  StepFlags step;
  std::string out;
  std::string problem_out;
  bool json = false;
};

absl::Status RunPlan(const Flags& flags) {
  LOADLINE_RETURN_IF_ERROR(CheckOutputPaths(
      InputPaths(flags.step), {{"--problem", flags.problem_out},
                               {"-o", flags.out},
                               {"--json", flags.json ? "-" : ""}}));
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
  } else if (flags.out != "-") {
    Print("{}\n{}{}", PlanTable(step.problem, step.keep_everything, step.plan),
          StructureText(step), MadeAgainBy());
  }
  return absl::OkStatus();
}

}  // namespace

VerbBody AddPlan(CLI::App* app) {
  auto flags = std::make_shared<Flags>();
  AddPlannedModelFlags(app, &flags->step.model);
  AddLossFlags(app, &flags->step.loss);
  AddOptimizerFlags(app, &flags->step.optimizer);
  AddPlanFlags(app, &flags->step.plan);
  AddStructureFlags(app, &flags->step.plan);
  AddOutputFlag(app, &flags->out, "Plan file; - is stdout");
  app->add_option("--problem", flags->problem_out,
                  "Also write the problem, for loadline verify")
      ->type_name("FILE")
      ->take_last();
  AddJsonFlag(app, &flags->json);
  return [flags] { return RunPlan(*flags); };
}

}  // namespace loadline::tools
