// Tested by tests/tools/report/structure_output_test.cc.
#include "tools/report/structure_output.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fmt/format.h"
#include "models/micro_batches.h"
#include "nlohmann/json.hpp"
#include "tools/cli/units.h"

namespace loadline::tools {
namespace {

std::string PartsText(int64_t parts) {
  return parts == 1 ? "one piece" : absl::StrCat(parts, " micro-batches");
}

}  // namespace

std::string StructureText(const PlannedStep& step) {
  const int64_t chosen = models::MicroBatchesOf(step.graph);
  if (step.tried.empty()) {
    if (chosen == 1) return "";
    return absl::StrCat("The step runs in ", PartsText(chosen),
                        ", whose gradients are added up.\n");
  }
  std::string out =
      fmt::format("The step runs in {}, chosen of:\n", PartsText(chosen));
  for (const TriedStructure& tried : step.tried) {
    out += fmt::format("  {:<18}{}\n", PartsText(tried.micro_batches),
                       tried.outcome);
  }
  return out;
}

void AddStructure(const PlannedStep& step, nlohmann::ordered_json* out) {
  if (step.tried.empty() && models::MicroBatchesOf(step.graph) == 1) return;
  (*out)["micro_batches"] = models::MicroBatchesOf(step.graph);
  if (step.tried.empty()) return;
  (*out)["structures"] = nlohmann::ordered_json::array();
  for (const TriedStructure& tried : step.tried) {
    (*out)["structures"].push_back(
        {{"micro_batches", tried.micro_batches}, {"outcome", tried.outcome}});
  }
}

std::string StructuresFront(const std::vector<Swept>& all) {
  std::vector<std::pair<const planner::Plan*, int64_t>> points;
  for (const Swept& swept : all) {
    for (const ParetoPoint& point : swept.points) {
      points.emplace_back(&point.plan,
                          models::MicroBatchesOf(swept.step.graph));
    }
  }
  std::stable_sort(
      points.begin(), points.end(), [](const auto& a, const auto& b) {
        return std::pair(a.first->budget_bytes, a.first->predicted.step_ns) <
               std::pair(b.first->budget_bytes, b.first->predicted.step_ns);
      });
  std::string out = fmt::format("{:>10}{:>10}   {}\n", "budget", "step", "in");
  const planner::Plan* last = nullptr;
  for (const auto& [plan, parts] : points) {
    if (last != nullptr && plan->predicted.step_ns >= last->predicted.step_ns) {
      continue;
    }
    last = plan;
    out += fmt::format("{:>10}{:>10}   {}\n", FormatBytes(plan->budget_bytes),
                       FormatNs(plan->predicted.step_ns), PartsText(parts));
  }
  return out;
}

}  // namespace loadline::tools
