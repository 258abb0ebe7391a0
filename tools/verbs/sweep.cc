// `loadline sweep`: step time by budget. One plan at each of several budgets,
// for one or several sizes of the batch or another axis; or the largest size
// that fits a budget. Tested by tests/end_to_end/sweep_test.cc.
#include "tools/pipeline/sweep.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/micro_batches.h"
#include "models/onnx/declared_inputs.h"
#include "nlohmann/json.hpp"
#include "planner/base/status_macros.h"
#include "spdlog/spdlog.h"
#include "tools/cli/command.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/flags.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json_text.h"
#include "tools/cli/number_checks.h"
#include "tools/cli/reproduce.h"
#include "tools/cli/standard_output.h"
#include "tools/cli/units.h"
#include "tools/pipeline/choose_structure.h"
#include "tools/pipeline/device.h"
#include "tools/pipeline/files.h"
#include "tools/pipeline/import_model.h"
#include "tools/pipeline/load_data.h"
#include "tools/pipeline/measure_pareto.h"
#include "tools/pipeline/output_paths.h"
#include "tools/pipeline/plan_request.h"
#include "tools/pipeline/plan_training_step.h"
#include "tools/report/assumptions.h"
#include "tools/report/document.h"
#include "tools/report/page.h"
#include "tools/report/plan_summary.h"
#include "tools/report/structure_output.h"
#include "tools/report/sweep_output.h"

namespace loadline::tools {
namespace {

constexpr int64_t kLargestTried = int64_t{1} << 20;
constexpr int64_t kFirstTried = 32;  // size to begin with, without --batch

struct SweepVerbFlags {
  StepFlags step;
  int budgets = 8;
  std::vector<int64_t> batches;
  std::string over;
  bool largest_batch = false;
  std::string largest;
  int64_t run_steps = 0;
  std::string html;
  bool json = false;
};

// A size of the axis, or the flags' own; or a structure of the step.
struct Place {
  std::string axis;
  int64_t size = 0;  // 0: as in the flags
  std::optional<Structure> structure;
  bool by_name = false;  // --dim, even if the name is "batch"
};

// Whether an open axis that is not the first of its input is named "batch":
// --batch does not set it.
absl::StatusOr<bool> HasInnerBatch(const StepFlags& flags) {
  LOADLINE_ASSIGN_OR_RETURN(const models::ImportOptions options,
                            ImportOptionsFor(flags.model, /*training=*/true));
  LOADLINE_ASSIGN_OR_RETURN(
      const std::vector<models::DeclaredInput> inputs,
      models::ReadDeclaredInputs(flags.model.model, options));
  bool inner = false;
  for (const models::DeclaredInput& input : inputs) {
    for (size_t i = 0; input.axes.has_value() && i < input.axes->size(); ++i) {
      const models::DeclaredAxis& axis = (*input.axes)[i];
      if (axis.size.has_value() || axis.name != kBatchAxis) continue;
      if (i == 0) return false;
      inner = true;
    }
  }
  return inner;
}

StepFlags FlagsAt(const StepFlags& flags, const Place& place) {
  if (place.structure.has_value()) {
    return WithStructure(flags, *place.structure);
  }
  if (place.by_name) {
    StepFlags changed = flags;
    changed.model.dims.push_back(absl::StrCat(place.axis, "=", place.size));
    return changed;
  }
  return place.size == 0 ? flags : WithSize(flags, place.axis, place.size);
}

// Makes the step with everything kept, without a search.
absl::StatusOr<PlannedStep> PoseAt(const SweepVerbFlags& flags,
                                   const Place& place,
                                   const std::atomic<bool>* stop) {
  LOADLINE_ASSIGN_OR_RETURN(const auto device,
                            MakeDevice(flags.step.plan.device));
  StepFlags step_flags = FlagsAt(flags.step, place);
  step_flags.plan.budget.clear();
  LOADLINE_ASSIGN_OR_RETURN(PlannedStep step,
                            PlanTrainingStep(step_flags, *device, stop));
  const std::vector<int64_t>& dims =
      step.graph.value(step.graph.inputs[0]).type.dims;
  if (place.size > 0 && place.axis == kBatchAxis && !place.by_name &&
      (dims.empty() ||
       dims[0] * models::MicroBatchesOf(step.graph) != place.size)) {
    return absl::InvalidArgumentError(absl::StrCat(
        flags.step.model.model, ": the first axis of its input is fixed at ",
        dims.empty()
            ? "nothing"
            : absl::StrCat(dims[0] * models::MicroBatchesOf(step.graph)),
        ", so there is one batch size only; export it with a dynamic axis"));
  }
  return step;
}

// The plan for the requested budget; otherwise the smallest one that costs at
// most one percent of time.
absl::StatusOr<planner::Plan> PlanToShow(const SweepVerbFlags& flags,
                                         const PlannedStep& step,
                                         const std::vector<ParetoPoint>& points,
                                         const std::atomic<bool>* stop) {
  if (!flags.step.plan.budget.empty()) {
    return SolveFor(step.problem, flags.step, step.keep_everything, stop);
  }
  const double limit_ns =
      1.01 * static_cast<double>(step.keep_everything.predicted.step_ns);
  for (const ParetoPoint& point : points) {
    if (static_cast<double>(point.plan.predicted.step_ns) <= limit_ns) {
      return point.plan;
    }
  }
  return points.back().plan;
}

absl::StatusOr<Swept> SweepAt(const SweepVerbFlags& flags, const Place& place,
                              const std::atomic<bool>* stop) {
  Swept swept;
  LOADLINE_ASSIGN_OR_RETURN(swept.step, PoseAt(flags, place, stop));
  LOADLINE_ASSIGN_OR_RETURN(
      std::vector<planner::Plan> plans,
      SweepBudgets(swept.step, flags.step, flags.budgets, stop));
  for (planner::Plan& plan : plans) {
    ParetoPoint point;
    if (place.size > 0) point.axis = place.axis;
    point.size = place.size;
    point.plan = std::move(plan);
    spdlog::info("budget {}: step {}", FormatBytes(point.plan.budget_bytes),
                 FormatNs(point.plan.predicted.step_ns));
    swept.points.push_back(std::move(point));
  }
  LOADLINE_RETURN_IF_ERROR(MeasurePareto(flags.step, flags.run_steps,
                                         &swept.step, &swept.points, stop));
  LOADLINE_ASSIGN_OR_RETURN(swept.step.plan,
                            PlanToShow(flags, swept.step, swept.points, stop));
  return swept;
}

absl::Status WritePage(const SweepVerbFlags& flags, const PlannedStep& step,
                       const std::vector<ParetoPoint>& points,
                       const std::atomic<bool>* stop) {
  if (flags.html.empty()) return absl::OkStatus();
  ReportInput input = InputOf(step);
  planner::Plan recompute_only;
  LOADLINE_ASSIGN_OR_RETURN(
      PlanRequest alone, ReadPlanRequest(flags.step.plan, flags.step.purpose));
  if (alone.options.allow_recompute && alone.options.allow_offload) {
    alone.options.allow_offload = false;
    alone.budget = planner::Budget::Smallest();
    LOADLINE_ASSIGN_OR_RETURN(
        recompute_only,
        SolveFor(step.problem, alone, step.keep_everything, stop));
    input.recompute_only = &recompute_only;
  }
  input.pareto = points;
  for (const ParetoPoint& point : points) {
    if (point.size == points[0].size && !point.measured.empty() &&
        point.plan.budget_bytes == step.plan.budget_bytes) {
      input.measured = &point.measured[0];
    }
  }
  input.assumptions = Assumptions(step.problem, &flags.step);
  LOADLINE_ASSIGN_OR_RETURN(const nlohmann::ordered_json document,
                            ReportDocument(input));
  return WriteFile(flags.html, ReportPage(document));
}

void PrintParetoTables(const SweepVerbFlags& flags,
                       const std::vector<Swept>& all) {
  for (const Swept& swept : all) {
    const planner::Plan& smallest = swept.points.front().plan;
    if (swept.points[0].size > 0) {
      Print("{} {}\n", swept.points[0].axis, swept.points[0].size);
    }
    Print("{}\n", ParetoTable(swept.step, swept.points, flags.run_steps > 0));
    Print("Smallest budget met: {}; no plan peaks below {}.\n\n",
          FormatBytes(smallest.budget_bytes),
          FormatBytes(smallest.bounds.peak_bytes));
  }
  if (IsAuto(flags.step.plan) && all.size() > 1) {
    Print("The fastest of these at each budget:\n\n{}\n", StructuresFront(all));
  }
  PrintText(PlanNote(all.front().step, flags.step));
  PrintText(ReproduceWith());
}

// "head" of a structure that splits it, "head+mlp" for both.
std::string SplitAxis(const Structure& structure) {
  return absl::StrJoin(structure.splits, "+",
                       [](std::string* out, const std::string& split) {
                         out->append(split, 0, split.find('='));
                       });
}

// One place for each number of micro-batches that `auto` may choose, and one
// for each way to split the step with the fewest of them.
absl::StatusOr<std::vector<Place>> StructuresOf(const SweepVerbFlags& flags,
                                                const std::atomic<bool>* stop) {
  LOADLINE_ASSIGN_OR_RETURN(const auto device,
                            MakeDevice(flags.step.plan.device));
  LOADLINE_ASSIGN_OR_RETURN(const models::Imported model,
                            ImportToTrain(flags.step));
  LOADLINE_ASSIGN_OR_RETURN(const PlannedStep plain,
                            PoseGraph(model.graph, flags.step, *device, stop));
  LOADLINE_ASSIGN_OR_RETURN(const std::vector<Structure> possible,
                            PossibleStructures(model.graph, flags.step, plain));
  std::vector<Place> places;
  const bool chooses_splits = !SplitsOf(flags.step.plan)->has_value();
  for (const Structure& structure : possible) {
    if (!chooses_splits || structure.splits.empty()) {
      places.push_back({kMicroBatchesAxis, structure.micro_batches, structure});
    } else if (structure.micro_batches == possible[0].micro_batches) {
      const passes::Split first = *passes::ParseSplit(structure.splits[0]);
      places.push_back({SplitAxis(structure), first.segments, structure});
    }
  }
  return places;
}

absl::StatusOr<std::vector<Place>> PlacesOf(const SweepVerbFlags& flags,
                                            const std::atomic<bool>* stop) {
  if (IsAuto(flags.step.plan)) return StructuresOf(flags, stop);
  Axis axis = {kBatchAxis, flags.batches};
  bool by_name = false;
  if (!flags.over.empty()) {
    LOADLINE_ASSIGN_OR_RETURN(axis, ParseAxis("--over", flags.over));
    if (axis.name == kBatchAxis) {
      LOADLINE_ASSIGN_OR_RETURN(by_name, HasInnerBatch(flags.step));
    }
  }
  std::vector<Place> places;
  for (int64_t size : axis.sizes) {
    places.push_back({.axis = axis.name, .size = size, .by_name = by_name});
  }
  if (places.empty()) places.emplace_back();
  return places;
}

absl::Status SweepPlaces(const SweepVerbFlags& flags,
                         const std::atomic<bool>* stop) {
  LOADLINE_ASSIGN_OR_RETURN(const std::vector<Place> places,
                            PlacesOf(flags, stop));
  std::vector<Swept> all;
  std::vector<ParetoPoint> points;
  for (const Place& place : places) {
    LOADLINE_ASSIGN_OR_RETURN(Swept swept, SweepAt(flags, place, stop));
    points.insert(points.end(), swept.points.begin(), swept.points.end());
    all.push_back(std::move(swept));
  }
  LOADLINE_RETURN_IF_ERROR(WritePage(flags, all[0].step, points, stop));
  if (flags.json) {
    Print("{}\n", JsonText(SweepJson(all, flags.run_steps)));
  } else if (flags.html != "-") {
    PrintParetoTables(flags, all);
  }
  return absl::OkStatus();
}

// A step with a plan that fits.
struct FittingStep {
  PlannedStep step;
  bool quick = false;  // found by Effort::kQuick
};

// Tries one size within the budget: its plan, or none. Most sizes that are
// tried need any plan, not a good one: a quick search first. Errors other than
// "cannot fit" are returned; `refusal` gets that one.
absl::StatusOr<std::optional<FittingStep>> TryAt(const SweepVerbFlags& flags,
                                                 const Place& place,
                                                 const std::atomic<bool>* stop,
                                                 absl::Status* refusal) {
  LOADLINE_ASSIGN_OR_RETURN(PlannedStep step, PoseAt(flags, place, stop));
  StepFlags step_flags = flags.step;
  const bool timed = !flags.step.plan.time_limit.empty();
  bool quick = !timed;  // a time limit replaces the effort
  if (quick) step_flags.purpose.effort = planner::Effort::kQuick;
  auto plan = SolveFor(step.problem, step_flags, step.keep_everything, stop);
  if (quick && !plan.ok() && ExitCodeFor(plan.status()) == kCannotFit) {
    quick = false;
    plan = SolveFor(step.problem, flags.step, step.keep_everything, stop);
  }
  spdlog::info("{} {}: {}", place.axis, place.size,
               plan.ok() ? "fits" : "no plan found");
  if (plan.ok()) {
    step.plan = *std::move(plan);
    return FittingStep{std::move(step), quick};
  }
  // Reaching the time limit means no plan, unless the user stopped the search.
  const bool late =
      absl::IsDeadlineExceeded(plan.status()) && timed && !stop->load();
  if (!late && ExitCodeFor(plan.status()) != kCannotFit) return plan.status();
  *refusal = plan.status();
  return std::nullopt;
}

absl::Status RunLargest(const SweepVerbFlags& flags, const std::string& axis,
                        const std::atomic<bool>* stop) {
  std::optional<FittingStep> met;
  absl::Status refusal;
  Place place = {.axis = axis};
  if (!flags.largest.empty() && axis == kBatchAxis) {
    LOADLINE_ASSIGN_OR_RETURN(place.by_name, HasInnerBatch(flags.step));
  }
  const auto fits = [&](int64_t size) -> absl::StatusOr<bool> {
    place.size = size;
    LOADLINE_ASSIGN_OR_RETURN(std::optional<FittingStep> tried,
                              TryAt(flags, place, stop, &refusal));
    if (!tried.has_value()) return false;
    met = std::move(tried);
    return true;
  };
  const int64_t first = axis == kBatchAxis
                            ? flags.step.model.batch.value_or(kFirstTried)
                            : kFirstTried;
  LOADLINE_ASSIGN_OR_RETURN(const Largest found,
                            FindLargest(first, kLargestTried, fits));
  if (!met.has_value()) return refusal;
  PlannedStep& best = met->step;
  if (met->quick) {
    const auto better =
        SolveFor(best.problem, flags.step, best.keep_everything, stop);
    // At equal objectives the longer search has the better bounds.
    if (better.ok() &&
        better->predicted.step_ns <= best.plan.predicted.step_ns) {
      best.plan = *better;
    }
  }
  std::vector<ParetoPoint> points(1);
  ParetoPoint& point = points[0];
  point.axis = axis;
  point.size = found.size;
  point.plan = best.plan;
  LOADLINE_RETURN_IF_ERROR(
      MeasurePareto(flags.step, flags.run_steps, &best, &points, stop));
  best.plan = point.plan;
  LOADLINE_RETURN_IF_ERROR(WritePage(flags, best, points, stop));
  if (flags.json) {
    Print("{}\n", JsonText(LargestJson(best, point, found, flags.run_steps)));
    return absl::OkStatus();
  }
  if (flags.html == "-") return absl::OkStatus();
  Print("Largest {} in {}: {}", axis, FormatBytes(best.plan.budget_bytes),
        found.size);
  if (found.smallest_not > 0) {
    Print("; no plan was found for {}", found.smallest_not);
  }
  Print("\n\n{}\n{}{}",
        PlanTable(best.problem, best.keep_everything, best.plan),
        PlanNote(best, flags.step), ReproduceWith());
  return absl::OkStatus();
}

absl::Status CheckFlags(const SweepVerbFlags& flags) {
  LOADLINE_RETURN_IF_ERROR(MicroBatchesOf(flags.step.plan).status());
  LOADLINE_RETURN_IF_ERROR(SplitsOf(flags.step.plan).status());
  if (IsAuto(flags.step.plan) &&
      (!flags.batches.empty() || !flags.over.empty() || flags.largest_batch ||
       !flags.largest.empty())) {
    return absl::InvalidArgumentError(
        AutoFlag(flags.step.plan) +
        ": sweeps the structures of the step, and no other axis beside them; "
        "give numbers");
  }
  if (flags.run_steps > 0 && flags.step.loss.data.empty()) {
    return NeedsData("--run");
  }
  if (!flags.batches.empty() && !flags.over.empty()) {
    return absl::InvalidArgumentError("--batches and --over: give one of them");
  }
  if (flags.largest_batch && !flags.largest.empty()) {
    return absl::InvalidArgumentError(
        "--largest-batch and --largest: give one of them");
  }
  if (!flags.largest_batch && flags.largest.empty()) return absl::OkStatus();
  const std::string flag =
      flags.largest_batch ? "--largest-batch" : "--largest";
  if (!flags.batches.empty() || !flags.over.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flags.over.empty() ? "--batches" : "--over", " and ", flag,
                     ": give one of them"));
  }
  LOADLINE_ASSIGN_OR_RETURN(const PlanRequest request,
                            ReadPlanRequest(flags.step.plan));
  if (!request.budget.has_value() ||
      request.budget->kind != planner::Budget::Kind::kBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": needs --budget in bytes, such as 2GiB"));
  }
  return absl::OkStatus();
}

absl::Status RunSweep(SweepVerbFlags flags) {
  LOADLINE_RETURN_IF_ERROR(CheckOutputPaths(
      InputPaths(flags.step),
      {{"--html", flags.html}, {"--json", flags.json ? "-" : ""}}));
  const std::atomic<bool>* stop = CatchInterrupts();
  LOADLINE_RETURN_IF_ERROR(CheckFlags(flags));
  if (flags.run_steps > 0) flags.step.plan.calibrate = true;
  if (flags.largest_batch) return RunLargest(flags, kBatchAxis, stop);
  if (!flags.largest.empty()) return RunLargest(flags, flags.largest, stop);
  return SweepPlaces(flags, stop);
}

}  // namespace

VerbBody AddSweep(CLI::App* app) {
  auto flags = std::make_shared<SweepVerbFlags>();
  AddModelFlags(app, &flags->step.model);
  AddLossFlags(app, &flags->step.loss);
  AddOptimizerFlags(app, &flags->step.optimizer);
  AddPlanFlags(app, &flags->step.plan);
  AddStructureFlags(app, &flags->step.plan);
  app->add_option("--budgets", flags->budgets,
                  "How many, from the smallest that is met to all kept")
      ->check(CLI::Range(2, 1000))
      ->capture_default_str()
      ->take_last();
  app->add_option("--batches", flags->batches, "Batch sizes, such as 16,32,64")
      ->delimiter(',')
      ->check(CheckPositive);
  app->add_option("--over", flags->over,
                  "Sizes of an open axis instead, such as sequence=64,128")
      ->type_name("NAME=N,N")
      ->take_last();
  app->add_flag("--largest-batch", flags->largest_batch,
                "Instead: the largest batch that --budget holds");
  app->add_option("--largest", flags->largest,
                  "Instead: the largest size of that open axis")
      ->type_name("NAME")
      ->take_last();
  app->add_option("--run", flags->run_steps,
                  "Really run so many steps at each point (needs --data)")
      ->check(CheckPositive)
      ->take_last();
  app->add_option("--html", flags->html, "A self-contained HTML page")
      ->type_name("FILE")
      ->take_last();
  AddJsonFlag(app, &flags->json);
  return [flags] { return RunSweep(*flags); };
}

}  // namespace loadline::tools
