// `loadline report`: writes a plan as a readable page. Tested by
// tests/end_to_end/report_test.cc, and in a browser by tests/browser.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "nlohmann/json.hpp"
#include "planner/base/status_macros.h"
#include "tools/cli/command.h"
#include "tools/cli/flags.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json_text.h"
#include "tools/cli/number_checks.h"
#include "tools/cli/reproduce.h"
#include "tools/cli/standard_output.h"
#include "tools/pipeline/choose_structure.h"
#include "tools/pipeline/device.h"
#include "tools/pipeline/files.h"
#include "tools/pipeline/load_data.h"
#include "tools/pipeline/measure_plan.h"
#include "tools/pipeline/output_paths.h"
#include "tools/pipeline/plan_files.h"
#include "tools/pipeline/plan_request.h"
#include "tools/pipeline/plan_training_step.h"
#include "tools/pipeline/planner_file_flags.h"
#include "tools/report/assumptions.h"
#include "tools/report/document.h"
#include "tools/report/page.h"
#include "tools/report/plan_summary.h"
#include "tools/report/structure_output.h"
#include "tools/report/tables.h"
#include "tools/report/trace_file.h"

namespace loadline::tools {
namespace {

struct ReportVerbFlags {
  StepFlags step;
  std::string problem_in;
  std::string html;
  std::string trace;
  std::string markdown;
  std::string csv;
  int64_t steps = 0;
  bool json = false;
};

// Reads a plan or a problem from a file; the step then has no graph.
absl::StatusOr<PlannedStep> ReadStep(const ReportVerbFlags& flags,
                                     const std::atomic<bool>* cancel) {
  const std::string& path = flags.step.model.model;
  const bool is_plan = !flags.problem_in.empty();
  if (is_plan) {
    LOADLINE_RETURN_IF_ERROR(CheckForPlanFile(flags.step));
    LOADLINE_ASSIGN_OR_RETURN(PlannedStep step,
                              ReadProblemStep(flags.problem_in));
    LOADLINE_ASSIGN_OR_RETURN(step.plan, ReadPlanFile(path, step.problem));
    LOADLINE_RETURN_IF_ERROR(VerifyPlanFile(path, step.problem, step.plan));
    return step;
  }
  LOADLINE_ASSIGN_OR_RETURN(PlannedStep step, ReadProblemStepFor(flags.step));
  LOADLINE_ASSIGN_OR_RETURN(step.plan, SolveFor(step.problem, flags.step,
                                                step.keep_everything, cancel));
  return step;
}

absl::StatusOr<PlannedStep> PlanModel(const StepFlags& flags,
                                      const std::atomic<bool>* cancel) {
  LOADLINE_ASSIGN_OR_RETURN(const auto device, MakeDevice(flags.plan.device));
  return PlanTrainingStep(flags, *device, cancel);
}

std::vector<NamedPath> OutputsOf(const ReportVerbFlags& flags) {
  return {{"--html", flags.html},
          {"--trace", flags.trace},
          {"--markdown", flags.markdown},
          {"--csv", flags.csv},
          {"--json", flags.json ? "-" : ""}};
}

absl::Status CheckFlags(const ReportVerbFlags& flags, bool is_file) {
  std::vector<NamedPath> inputs = InputPaths(flags.step);
  inputs.push_back({"--problem", flags.problem_in});
  LOADLINE_RETURN_IF_ERROR(CheckOutputPaths(inputs, OutputsOf(flags)));
  if (flags.steps > 0 && is_file) {
    return absl::InvalidArgumentError(
        "--steps: running needs the model, not a plan or a problem alone");
  }
  if (flags.steps > 0 && flags.step.loss.data.empty()) {
    return NeedsData("--steps");
  }
  if (!flags.problem_in.empty() && !is_file) {
    return absl::InvalidArgumentError(
        "--problem: belongs to a plan file, PLAN.json");
  }
  return absl::OkStatus();
}

absl::Status RunReport(ReportVerbFlags flags) {
  const std::atomic<bool>* stop = CatchInterrupts();
  const bool is_file = IsPlannerFile(flags.step.model.model);
  LOADLINE_RETURN_IF_ERROR(CheckFlags(flags, is_file));
  if (flags.steps > 0) flags.step.plan.calibrate = true;
  LOADLINE_ASSIGN_OR_RETURN(
      const PlannedStep step,
      is_file ? ReadStep(flags, stop) : PlanModel(flags.step, stop));
  std::optional<Measured> measured;
  if (flags.steps > 0) {
    LOADLINE_ASSIGN_OR_RETURN(measured,
                              Measure(step, flags.step, flags.steps, stop));
  }
  ReportInput input = InputOf(step);
  input.measured = measured.has_value() ? &*measured : nullptr;
  input.assumptions =
      Assumptions(step.problem, is_file ? nullptr : &flags.step);
  LOADLINE_ASSIGN_OR_RETURN(const nlohmann::ordered_json document,
                            ReportDocument(input));
  if (!flags.html.empty()) {
    LOADLINE_RETURN_IF_ERROR(WriteFile(flags.html, ReportPage(document)));
  }
  if (!flags.trace.empty()) {
    absl::Span<const executor::TraceSpan> spans;
    if (measured.has_value()) spans = measured->spans;
    LOADLINE_RETURN_IF_ERROR(WriteTrace(flags.trace, step, spans));
  }
  if (!flags.markdown.empty()) {
    LOADLINE_RETURN_IF_ERROR(
        WriteFile(flags.markdown, ReportMarkdown(document)));
  }
  if (!flags.csv.empty()) {
    LOADLINE_RETURN_IF_ERROR(WriteFile(flags.csv, TensorCsv(document)));
  }
  if (flags.json) {
    Print("{}\n", JsonText(document));
  } else if (flags.html != "-" && flags.markdown != "-" && flags.csv != "-" &&
             flags.trace != "-") {
    Print("{}\n{}{}{}",
          PlanTable(step.problem, step.keep_everything, step.plan),
          StructureText(step), is_file ? "" : PlanNote(step, flags.step),
          ReproduceWith());
  }
  LogWritten(OutputsOf(flags));
  return absl::OkStatus();
}

}  // namespace

VerbBody AddReport(CLI::App* app) {
  auto flags = std::make_shared<ReportVerbFlags>();
  AddPlannedStepFlags(app, &flags->step);
  app->add_option("--problem", flags->problem_in,
                  "The problem that a plan file was made for")
      ->type_name("FILE")
      ->take_last();
  app->add_option("--html", flags->html, "A self-contained HTML page")
      ->type_name("FILE")
      ->take_last();
  app->add_option("--trace", flags->trace,
                  "Chrome trace of the lanes, .json (opens in Perfetto)")
      ->type_name("FILE")
      ->take_last();
  app->add_option("--markdown", flags->markdown,
                  "Summary for a pull request; - is stdout")
      ->type_name("FILE")
      ->take_last();
  app->add_option("--csv", flags->csv, "Table of the tensors; - is stdout")
      ->type_name("FILE")
      ->take_last();
  app->add_option("--steps", flags->steps,
                  "Also run so many steps, and show what was measured")
      ->check(CheckPositive)
      ->take_last();
  app->add_flag("--json", flags->json, "The report's document on stdout");
  return [flags] { return RunReport(*flags); };
}

}  // namespace loadline::tools
