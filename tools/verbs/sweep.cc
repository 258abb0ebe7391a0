// `loadline sweep`: what a byte buys. One plan at each of some budgets, for one
// batch size or several; or the largest batch that a budget holds. Tested by
// tests/end_to_end/sweep_test.cc.
#include "tools/sweep.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "executor/cpu/device.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "planner/status_macros.h"
#include "spdlog/spdlog.h"
#include "tools/command.h"
#include "tools/exit_code.h"
#include "tools/files.h"
#include "tools/flags.h"
#include "tools/interrupt.h"
#include "tools/measure.h"
#include "tools/plan_summary.h"
#include "tools/report/assumptions.h"
#include "tools/report/document.h"
#include "tools/report/page.h"
#include "tools/reproduce.h"
#include "tools/units.h"
#include "tools/way.h"

namespace loadline::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kLargestBatchAsked = int64_t{1} << 20;

struct Flags {
  StepFlags step;
  int budgets = 8;
  std::vector<int64_t> batches;
  bool largest_batch = false;
  int64_t run_steps = 0;
  std::string html;
  bool json = false;
};

// What was swept; `step.plan` is the plan of the report.
struct Swept {
  PlannedStep step;
  std::vector<FrontPoint> points;
};

StepFlags WithBatch(const StepFlags& flags, std::optional<int64_t> batch) {
  StepFlags changed = flags;
  if (batch.has_value()) changed.model.batch = batch;
  return changed;
}

// The step without a search: everything kept.
absl::StatusOr<PlannedStep> PoseBatch(const Flags& flags,
                                      std::optional<int64_t> batch,
                                      const std::atomic<bool>* stop) {
  executor::CpuDevice device;
  StepFlags step_flags = WithBatch(flags.step, batch);
  step_flags.plan.budget.clear();
  LOADLINE_ASSIGN_OR_RETURN(PlannedStep step,
                            PlanTrainingStep(step_flags, device, stop));
  const std::vector<int64_t>& dims =
      step.graph.value(step.graph.inputs[0]).type.dims;
  if (batch.has_value() && (dims.empty() || dims[0] != *batch)) {
    return absl::InvalidArgumentError(absl::StrCat(
        flags.step.model.model, ": the first axis of its input is fixed at ",
        dims.empty() ? "nothing" : absl::StrCat(dims[0]),
        ", so there is one batch size only; export it with a dynamic axis"));
  }
  return step;
}

absl::Status MeasurePoint(const Flags& flags, PlannedStep* step,
                          FrontPoint* point, const std::atomic<bool>* stop) {
  if (flags.run_steps == 0) return absl::OkStatus();
  step->plan = point->plan;
  LOADLINE_ASSIGN_OR_RETURN(Measured measured,
                            Measure(*step, flags.step, flags.run_steps, stop));
  point->measured.push_back(std::move(measured));
  return absl::OkStatus();
}

// The fewest bytes that cost at most one percent of time, unless a budget was
// asked for.
absl::StatusOr<planner::Plan> PlanToShow(const Flags& flags,
                                         const PlannedStep& step,
                                         const std::vector<FrontPoint>& points,
                                         const std::atomic<bool>* stop) {
  if (!flags.step.plan.budget.empty()) {
    return SolveFor(step.problem, flags.step.plan, step.keep_everything, stop);
  }
  const double limit_ns =
      1.01 * static_cast<double>(step.keep_everything.predicted.step_ns);
  for (const FrontPoint& point : points) {
    if (static_cast<double>(point.plan.predicted.step_ns) <= limit_ns) {
      return point.plan;
    }
  }
  return points.back().plan;
}

absl::StatusOr<Swept> SweepBatch(const Flags& flags,
                                 std::optional<int64_t> batch,
                                 const std::atomic<bool>* stop) {
  Swept swept;
  LOADLINE_ASSIGN_OR_RETURN(swept.step, PoseBatch(flags, batch, stop));
  LOADLINE_ASSIGN_OR_RETURN(
      std::vector<planner::Plan> plans,
      SweepBudgets(swept.step, flags.step, flags.budgets, stop));
  for (planner::Plan& plan : plans) {
    FrontPoint point;
    point.batch = batch.value_or(0);
    point.plan = std::move(plan);
    LOADLINE_RETURN_IF_ERROR(MeasurePoint(flags, &swept.step, &point, stop));
    spdlog::info("budget {}: step {}", FormatBytes(point.plan.budget_bytes),
                 FormatNs(point.plan.predicted.step_ns));
    swept.points.push_back(std::move(point));
  }
  LOADLINE_ASSIGN_OR_RETURN(swept.step.plan,
                            PlanToShow(flags, swept.step, swept.points, stop));
  return swept;
}

std::string FrontTable(const PlannedStep& step,
                       const std::vector<FrontPoint>& points, bool measured) {
  const planner::Prediction& keep = step.keep_everything.predicted;
  std::string out =
      fmt::format("{:>10}{:>9}{:>9}{:>9}{:>10}{:>11}{:>9}{:>9}\n", "budget",
                  "share", "step", "slower", "again", "copied", "waiting",
                  measured ? "measured" : "");
  for (const FrontPoint& point : points) {
    const planner::Prediction& p = point.plan.predicted;
    out += fmt::format(
        "{:>10}{:>9}{:>9}{:>9}{:>10}{:>11}{:>9}{:>9}\n",
        FormatBytes(point.plan.budget_bytes),
        FormatPercent(static_cast<double>(point.plan.budget_bytes),
                      static_cast<double>(keep.peak_bytes)),
        FormatNs(p.step_ns),
        FormatPercent(static_cast<double>(p.step_ns - keep.step_ns),
                      static_cast<double>(keep.step_ns)),
        FormatNs(p.recompute_ns), FormatBytes(p.d2h_bytes + p.h2d_bytes),
        FormatNs(p.stall_ns),
        point.measured.empty() ? "" : FormatNs(point.measured[0].step_ns));
  }
  return out;
}

Json FrontJson(const Flags& flags, const std::vector<Swept>& all) {
  Json out;
  out["format"] = "loadline.sweep/1";
  out["command"] = CommandToReproduce();
  out["problem"] = all[0].step.problem.name;
  out["steps_run"] = flags.run_steps;
  out["points"] = Json::array();
  out["fronts"] = Json::array();
  for (const Swept& swept : all) {
    const planner::Plan& smallest = swept.points.front().plan;
    Json front;
    if (swept.points[0].batch > 0) front["batch"] = swept.points[0].batch;
    front["smallest_budget_bytes"] = smallest.budget_bytes;
    front["bound_peak_bytes"] = smallest.bounds.peak_bytes;
    front["keep_everything_peak_bytes"] =
        swept.step.keep_everything.predicted.peak_bytes;
    front["keep_everything_arena_bytes"] =
        swept.step.keep_everything.arena_bytes;
    front["keep_everything_step_ns"] =
        swept.step.keep_everything.predicted.step_ns;
    out["fronts"].push_back(std::move(front));
    for (const FrontPoint& point : swept.points) {
      out["points"].push_back(FrontPointJson(point));
    }
  }
  return out;
}

absl::Status WritePage(const Flags& flags, const PlannedStep& step,
                       const std::vector<FrontPoint>& points,
                       const std::atomic<bool>* stop) {
  if (flags.html.empty()) return absl::OkStatus();
  ReportInput input = InputOf(step);
  planner::Plan recompute_only;
  PlanFlags alone = flags.step.plan;
  if (!alone.no_recompute && !alone.no_offload) {
    alone.no_offload = true;
    alone.budget = "smallest";
    LOADLINE_ASSIGN_OR_RETURN(
        recompute_only,
        SolveFor(step.problem, alone, step.keep_everything, stop));
    input.recompute_only = &recompute_only;
  }
  input.front = points;
  for (const FrontPoint& point : points) {
    if (point.batch == points[0].batch && !point.measured.empty() &&
        point.plan.budget_bytes == step.plan.budget_bytes) {
      input.measured = &point.measured[0];
    }
  }
  input.assumptions = Assumptions(step.problem, &flags.step);
  LOADLINE_ASSIGN_OR_RETURN(const Json document, ReportDocument(input));
  return WriteFile(flags.html, ReportPage(document));
}

void PrintFronts(const Flags& flags, const std::vector<Swept>& all) {
  for (const Swept& swept : all) {
    const planner::Plan& smallest = swept.points.front().plan;
    if (swept.points[0].batch > 0) {
      fmt::print("batch {}\n", swept.points[0].batch);
    }
    fmt::print("{}\n",
               FrontTable(swept.step, swept.points, flags.run_steps > 0));
    fmt::print(
        "Smallest budget met: {}; no plan of any kind peaks below {}.\n\n",
        FormatBytes(smallest.budget_bytes),
        FormatBytes(smallest.bounds.peak_bytes));
  }
  fmt::print("Made again by: {}\n", CommandToReproduce());
}

absl::Status RunFronts(const Flags& flags, const std::atomic<bool>* stop) {
  std::vector<std::optional<int64_t>> batches(flags.batches.begin(),
                                              flags.batches.end());
  if (batches.empty()) batches.push_back(std::nullopt);
  std::vector<Swept> all;
  std::vector<FrontPoint> points;
  for (const std::optional<int64_t>& batch : batches) {
    LOADLINE_ASSIGN_OR_RETURN(Swept swept, SweepBatch(flags, batch, stop));
    points.insert(points.end(), swept.points.begin(), swept.points.end());
    all.push_back(std::move(swept));
  }
  LOADLINE_RETURN_IF_ERROR(WritePage(flags, all[0].step, points, stop));
  if (flags.json) {
    fmt::print("{}\n", FrontJson(flags, all).dump());
  } else if (flags.html != "-") {
    PrintFronts(flags, all);
  }
  return absl::OkStatus();
}

// One batch size against the budget: OK with its plan, or none.
absl::StatusOr<std::optional<PlannedStep>> TryBatch(
    const Flags& flags, int64_t batch, const std::atomic<bool>* stop,
    absl::Status* refusal) {
  LOADLINE_ASSIGN_OR_RETURN(PlannedStep step, PoseBatch(flags, batch, stop));
  auto plan =
      SolveFor(step.problem, flags.step.plan, step.keep_everything, stop);
  spdlog::info("batch {}: {}", batch, plan.ok() ? "fits" : "does not fit");
  if (plan.ok()) {
    step.plan = *std::move(plan);
    return step;
  }
  if (ExitCodeFor(plan.status()) != kCannotFit) return plan.status();
  *refusal = plan.status();
  return std::nullopt;
}

absl::Status RunLargestBatch(const Flags& flags,
                             const std::atomic<bool>* stop) {
  std::optional<PlannedStep> best;
  absl::Status refusal;
  const auto fits = [&](int64_t batch) -> absl::StatusOr<bool> {
    LOADLINE_ASSIGN_OR_RETURN(std::optional<PlannedStep> step,
                              TryBatch(flags, batch, stop, &refusal));
    const bool met = step.has_value();
    if (met) best = std::move(step);
    return met;
  };
  LOADLINE_ASSIGN_OR_RETURN(
      const LargestBatch found,
      FindLargestBatch(flags.step.model.batch.value_or(32), kLargestBatchAsked,
                       fits));
  if (!best.has_value()) return refusal;
  FrontPoint point;
  point.batch = found.batch;
  point.plan = best->plan;
  LOADLINE_RETURN_IF_ERROR(MeasurePoint(flags, &*best, &point, stop));
  LOADLINE_RETURN_IF_ERROR(WritePage(flags, *best, {point}, stop));
  if (flags.json) {
    Json out;
    out["format"] = "loadline.sweep/1";
    out["command"] = CommandToReproduce();
    out["problem"] = best->problem.name;
    out["steps_run"] = flags.run_steps;
    out["largest_batch"] = found.batch;
    out["smallest_batch_not_met"] = found.smallest_not;
    out["points"] = Json::array();
    out["points"].push_back(FrontPointJson(point));
    fmt::print("{}\n", out.dump());
    return absl::OkStatus();
  }
  if (flags.html == "-") return absl::OkStatus();
  fmt::print("Largest batch in {}: {}", FormatBytes(best->plan.budget_bytes),
             found.batch);
  if (found.smallest_not > 0) {
    fmt::print("; no plan was found for {}", found.smallest_not);
  }
  fmt::print("\n\n{}\nMade again by: {}\n",
             PlanTable(best->problem, best->keep_everything, best->plan),
             CommandToReproduce());
  return absl::OkStatus();
}

absl::Status RunSweep(Flags flags) {
  const std::atomic<bool>* stop = CatchInterrupts();
  if (flags.run_steps > 0 && flags.step.loss.data.empty()) {
    return absl::InvalidArgumentError("--run: needs --data, an .npz file");
  }
  if (flags.run_steps > 0) flags.step.plan.calibrate = true;
  if (!flags.largest_batch) return RunFronts(flags, stop);
  if (!flags.batches.empty()) {
    return absl::InvalidArgumentError(
        "--batches and --largest-batch: give one of them");
  }
  if (flags.step.plan.budget.empty() || flags.step.plan.budget == "smallest" ||
      absl::EndsWith(flags.step.plan.budget, "%")) {
    return absl::InvalidArgumentError(
        "--largest-batch: needs --budget in bytes, such as 2GiB");
  }
  return RunLargestBatch(flags, stop);
}

}  // namespace

VerbBody AddSweep(CLI::App* app) {
  auto flags = std::make_shared<Flags>();
  AddModelFlags(app, &flags->step.model);
  AddLossFlags(app, &flags->step.loss);
  AddOptimizerFlags(app, &flags->step.optimizer);
  AddPlanFlags(app, &flags->step.plan);
  app->add_option("--budgets", flags->budgets,
                  "How many, from the smallest that is met to all kept")
      ->check(CLI::Range(2, 1000))
      ->capture_default_str()
      ->take_last();
  app->add_option("--batches", flags->batches, "Batch sizes, such as 16,32,64")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  app->add_flag("--largest-batch", flags->largest_batch,
                "Instead: the largest batch that --budget holds");
  app->add_option("--run", flags->run_steps,
                  "Really run so many steps at each point (needs --data)")
      ->check(CLI::PositiveNumber)
      ->take_last();
  app->add_option("--html", flags->html, "One page that needs nothing else")
      ->type_name("FILE")
      ->take_last();
  AddJsonFlag(app, &flags->json);
  return [flags] { return RunSweep(*flags); };
}

}  // namespace loadline::tools
