// Three figures that hold for any search result: a proven bound, the peak of a
// known order, and the arena of a known layout. Tested by
// tests/tools/report/estimate_test.cc.
#include "tools/report/estimate.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "planner/base/status_macros.h"
#include "planner/solve/solve.h"
#include "tools/cli/units.h"
#include "tools/cli/wrap.h"
#include "tools/pipeline/plan_request.h"
#include "tools/pipeline/timeline.h"
#include "tools/report/attribution.h"

namespace loadline::tools {
namespace {

// Components: the report's kinds, and the input data as one more.
constexpr size_t kData = kMemoryKindCount;
constexpr size_t kComponents = kMemoryKindCount + 1;

class Components {
 public:
  explicit Components(const PlannedStep& step)
      : problem_(step.problem),
        index_(planner::IndexProblem(step.problem)),
        facts_(Attribute(step.problem,
                         step.graph.nodes.empty() ? nullptr : &step.graph,
                         step.model_tensors)) {
    for (size_t k = 0; k < kMemoryKindCount; ++k) {
      list_[k].name = std::string(MemoryKindName(static_cast<MemoryKind>(k)));
    }
    list_[kData].name = "data";
  }

  // Adds the bytes at the plan's peak.
  void AddPeak(const planner::Plan& plan, const Timeline& timeline) {
    size_t peak = 0;
    for (size_t s = 0; s < timeline.samples.size(); ++s) {
      if (timeline.samples[s].live_bytes > timeline.samples[peak].live_bytes) {
        peak = s;
      }
    }
    for (size_t b = 0; b < plan.buffers.size(); ++b) {
      const BufferLife& life = timeline.lives[b];
      const int32_t at = static_cast<int32_t>(peak);
      if (plan.buffers[b].space != planner::Space::kDevice || life.from > at ||
          life.to <= at) {
        continue;
      }
      list_[Of(plan.buffers[b].value)].peak_bytes += plan.buffers[b].bytes;
    }
  }

  // Counts each value once; an update's new contents use the same bytes.
  void AddTotals() {
    for (size_t v = 0; v < problem_.values.size(); ++v) {
      if (index_.previous_version[v] != planner::kNoValue) continue;
      list_[Of(static_cast<planner::ValueId>(v))].total_bytes +=
          problem_.values[v].bytes;
    }
    for (const planner::Node& node : problem_.nodes) {
      list_[Of(planner::kNoValue)].total_bytes += node.workspace_bytes;
    }
  }

  // The nonempty components in the report's order, data before workspace.
  std::vector<MemoryComponent> Take() {
    std::vector<MemoryComponent> taken;
    for (size_t k : {size_t{0}, size_t{1}, size_t{2}, size_t{3}, kData,
                     static_cast<size_t>(MemoryKind::kWorkspace)}) {
      if (list_[k].total_bytes > 0) taken.push_back(list_[k]);
    }
    return taken;
  }

 private:
  size_t Of(planner::ValueId value) const {
    if (value == planner::kNoValue) {
      return static_cast<size_t>(MemoryKind::kWorkspace);
    }
    const size_t v = Index(value);
    if (index_.producer[v] < 0 && !problem_.values[v].persistent) return kData;
    return static_cast<size_t>(facts_.kinds[v]);
  }

  const planner::Problem& problem_;
  const planner::ProblemIndex index_;
  const Attribution facts_;
  MemoryComponent list_[kComponents];
};

}  // namespace

absl::StatusOr<Estimate> EstimateStep(const PlannedStep& step,
                                      const PlanFlags& flags) {
  Estimate estimate;
  estimate.problem = step.problem.name;
  estimate.expected_bytes = step.keep_everything.predicted.peak_bytes;
  estimate.high_bytes = step.keep_everything.arena_bytes;
  LOADLINE_ASSIGN_OR_RETURN(const PlanRequest request, ReadPlanRequest(flags));
  if (request.budget.has_value()) {
    if (request.budget->kind == planner::Budget::Kind::kSmallest) {
      return absl::InvalidArgumentError(
          "--budget smallest: takes a search, which an estimate does not make; "
          "loadline plan does");
    }
    LOADLINE_ASSIGN_OR_RETURN(
        estimate.budget_bytes,
        RequestedBytes(step.problem, request, step.keep_everything));
  }
  LOADLINE_ASSIGN_OR_RETURN(
      estimate.low, planner::FindPeakFloor(step.problem, request.options));
  LOADLINE_ASSIGN_OR_RETURN(const Timeline timeline,
                            ReplayTimeline(step.problem, step.keep_everything));
  Components components(step);
  components.AddPeak(step.keep_everything, timeline);
  components.AddTotals();
  estimate.components = components.Take();
  if (step.problem.machine.has_value()) {
    estimate.outside_bytes = step.problem.machine->reserved_bytes;
    estimate.outside_counts =
        ReservedInBudget(step.problem, request.on_gpu) > 0;
  }
  return estimate;
}

Fit FitOf(const Estimate& estimate) {
  if (!estimate.budget_bytes.has_value()) return Fit::kNoBudget;
  if (*estimate.budget_bytes >= estimate.high_bytes) return Fit::kAsIs;
  return *estimate.budget_bytes < estimate.low.bytes ? Fit::kNever
                                                     : Fit::kPerhaps;
}

std::string EstimateVerdict(const PlannedStep& step, const Estimate& estimate) {
  const std::string budget = FormatBytes(estimate.budget_bytes.value_or(0));
  switch (FitOf(estimate)) {
    case Fit::kNoBudget:
      return fmt::format("Fits as it is in {}; no plan fits below {}.",
                         FormatBytes(estimate.high_bytes),
                         FormatBytes(estimate.low.bytes));
    case Fit::kAsIs:
      return fmt::format(
          "Fits as it is in {}, with {} to spare.", budget,
          FormatBytes(*estimate.budget_bytes - estimate.high_bytes));
    case Fit::kPerhaps:
      return fmt::format(
          "May fit in {} with a plan that saves {} of what keeping everything "
          "takes: loadline plan finds out.",
          budget, FormatBytes(estimate.high_bytes - *estimate.budget_bytes));
    case Fit::kNever:
      return fmt::format(
          "Proven not to fit in {}: {} more are needed at {}.", budget,
          FormatBytes(estimate.low.bytes - *estimate.budget_bytes),
          planner::DescribeTightest(step.problem, estimate.low));
  }
  return "";
}

std::string EstimateTable(const PlannedStep& step, const Estimate& estimate) {
  std::string out =
      fmt::format("{:<14}{:>13}{:>13}\n", "", "at the peak", "in all");
  for (const MemoryComponent& component : estimate.components) {
    out += fmt::format("{:<14}{:>13}{:>13}\n", component.name,
                       FormatBytes(component.peak_bytes),
                       FormatBytes(component.total_bytes));
  }
  out +=
      fmt::format("{:<14}{:>13}   used by libraries; {}\n\n", "outside",
                  FormatBytes(estimate.outside_bytes),
                  estimate.outside_counts ? "subtracted from a budget in bytes"
                                          : "not counted in the budget");
  const auto row = [&out](const char* name, int64_t bytes,
                          const std::string& what) {
    out += fmt::format("{:<14}{:>13}   {}\n", name, FormatBytes(bytes),
                       Wrapped(what, 30));
  };
  row("low", estimate.low.bytes,
      absl::StrCat("proven: no plan peaks lower; tightest at ",
                   planner::DescribeTightest(step.problem, estimate.low)));
  row("expected", estimate.expected_bytes,
      "everything kept, at the fullest moment of the given order");
  row("high", estimate.high_bytes, "the same, laid out in one arena");
  return absl::StrCat(out, "\n", Wrapped(EstimateVerdict(step, estimate), 0),
                      "\n");
}

nlohmann::ordered_json EstimateJson(const PlannedStep& step,
                                    const Estimate& estimate) {
  constexpr const char* kFits[] = {"no budget", "as is", "perhaps", "never"};
  nlohmann::ordered_json out;
  out["format"] = "loadline.estimate/1";
  out["problem"] = estimate.problem;
  out["verdict"] = EstimateVerdict(step, estimate);
  out["fits"] = kFits[static_cast<int>(FitOf(estimate))];
  if (estimate.budget_bytes.has_value()) {
    out["budget_bytes"] = *estimate.budget_bytes;
  }
  out["low_bytes"] = estimate.low.bytes;
  out["expected_bytes"] = estimate.expected_bytes;
  out["high_bytes"] = estimate.high_bytes;
  out["outside_bytes"] = estimate.outside_bytes;
  out["components"] = nlohmann::ordered_json::array();
  for (const MemoryComponent& component : estimate.components) {
    out["components"].push_back({{"name", component.name},
                                 {"peak_bytes", component.peak_bytes},
                                 {"total_bytes", component.total_bytes}});
  }
  nlohmann::ordered_json tightest;
  tightest["node"] = estimate.low.node == planner::NodeId{-1}
                         ? ""
                         : step.problem.node(estimate.low.node).name;
  tightest["values"] = nlohmann::ordered_json::array();
  for (planner::ValueId id : estimate.low.values) {
    const planner::Value& value = step.problem.value(id);
    tightest["values"].push_back(
        {{"name", value.name}, {"bytes", value.bytes}});
  }
  out["tightest"] = std::move(tightest);
  return out;
}

}  // namespace loadline::tools
