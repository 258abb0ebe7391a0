// `loadline plan`: from a model (or a problem file) to a verified plan and the
// table of what it trades. Tested by tests/end_to_end.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "executor/cpu/device.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "planner/solve.h"
#include "planner/status_macros.h"
#include "tools/command.h"
#include "tools/files.h"
#include "tools/flags.h"
#include "tools/interrupt.h"
#include "tools/plan_files.h"
#include "tools/plan_summary.h"
#include "tools/way.h"

namespace loadline::tools {
namespace {

struct Flags {
  StepFlags step;
  std::string out;
  std::string problem_out;
  bool json = false;
};

// The three things the table is made of.
struct Planned {
  planner::Problem problem;
  planner::Plan keep_everything;
  planner::Plan plan;
};

absl::StatusOr<Planned> PlanProblemFile(const Flags& flags,
                                        const std::atomic<bool>* cancel) {
  Planned planned;
  LOADLINE_ASSIGN_OR_RETURN(planned.problem,
                            ReadProblemFile(flags.step.model.model));
  LOADLINE_ASSIGN_OR_RETURN(planned.keep_everything,
                            planner::KeepEverything(planned.problem));
  LOADLINE_ASSIGN_OR_RETURN(planned.plan,
                            SolveFor(planned.problem, flags.step.plan,
                                     planned.keep_everything, cancel));
  return planned;
}

absl::StatusOr<Planned> PlanModel(const Flags& flags,
                                  const std::atomic<bool>* cancel) {
  executor::CpuDevice device;
  LOADLINE_ASSIGN_OR_RETURN(PlannedStep step,
                            PlanTrainingStep(flags.step, device, cancel));
  return Planned{std::move(step.problem), std::move(step.keep_everything),
                 std::move(step.plan)};
}

absl::Status RunPlan(const Flags& flags) {
  const std::atomic<bool>* cancel = CatchInterrupts();
  const bool is_problem = absl::EndsWith(flags.step.model.model, ".json");
  LOADLINE_ASSIGN_OR_RETURN(
      const Planned planned,
      is_problem ? PlanProblemFile(flags, cancel) : PlanModel(flags, cancel));
  if (!flags.problem_out.empty()) {
    LOADLINE_RETURN_IF_ERROR(WriteFile(
        flags.problem_out, planner::ProblemToJson(planned.problem) + "\n"));
  }
  if (!flags.out.empty()) {
    LOADLINE_RETURN_IF_ERROR(WriteFile(
        flags.out, planner::PlanToJson(planned.plan, planned.problem) + "\n"));
  }
  if (flags.json) {
    fmt::print("{}\n", PlanSummaryJson(planned.problem, planned.keep_everything,
                                       planned.plan)
                           .dump());
  } else if (flags.out != "-") {
    fmt::print("{}", PlanTable(planned.problem, planned.keep_everything,
                               planned.plan));
  }
  return absl::OkStatus();
}

}  // namespace

VerbBody AddPlan(CLI::App* app) {
  auto flags = std::make_shared<Flags>();
  AddModelFlags(app, &flags->step.model);
  AddLossFlags(app, &flags->step.loss);
  AddOptimizerFlags(app, &flags->step.optimizer);
  AddPlanFlags(app, &flags->step.plan);
  app->add_option("-o,--output", flags->out, "Plan file; - is stdout")
      ->take_last();
  app->add_option("--problem", flags->problem_out,
                  "Also write the problem, for loadline verify")
      ->take_last();
  app->add_flag("--json", flags->json, "One JSON document on stdout");
  return [flags] { return RunPlan(*flags); };
}

}  // namespace loadline::tools
