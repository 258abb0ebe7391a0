// Tested by tests/tools/report/structure_output_test.cc.
#include "tools/report/structure_output.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fmt/format.h"
#include "models/micro_batches.h"
#include "nlohmann/json.hpp"
#include "passes/structure.h"
#include "tools/cli/units.h"

namespace loadline::tools {
namespace {

// Structures of one outcome that have a line each; more are counted.
constexpr int kMostAlike = 3;

// "2 micro-batches and segments head=4".
std::string StructureWords(int64_t parts, const std::string& splits) {
  if (splits.empty()) {
    return parts == 1 ? "one piece" : absl::StrCat(parts, " micro-batches");
  }
  return absl::StrCat(
      parts == 1 ? "" : absl::StrCat(parts, " micro-batches and "), "segments ",
      splits);
}

std::string StructureWords(const TriedStructure& tried) {
  return StructureWords(tried.micro_batches, absl::StrJoin(tried.splits, " "));
}

// The splits of a step, as --split takes them.
std::vector<std::string> SplitTexts(const models::Graph& step) {
  std::vector<std::string> texts;
  for (const passes::Split& split : passes::SplitsIn(step)) {
    texts.push_back(absl::StrCat(split.chain, "=", split.segments));
  }
  return texts;
}

std::string StructureWords(const models::Graph& step) {
  return StructureWords(models::MicroBatchesOf(step),
                        absl::StrJoin(SplitTexts(step), " "));
}

std::string StatisticsText(const models::Graph& step) {
  if (!passes::HasOwnStatistics(step)) return "";
  return "Each micro-batch is normalized by its own batch statistics.\n";
}

// How many structures have each outcome.
std::map<std::string, int> CountOutcomes(
    const std::vector<TriedStructure>& all) {
  std::map<std::string, int> count;
  for (const TriedStructure& tried : all) ++count[tried.outcome];
  return count;
}

}  // namespace

std::string StructureText(const PlannedStep& step) {
  const std::string chosen = StructureWords(step.graph);
  if (step.tried.empty()) {
    if (chosen == StructureWords(1, "")) return "";
    return absl::StrCat("The step runs in ", chosen,
                        ", whose gradients are added up.\n",
                        StatisticsText(step.graph));
  }
  std::string out = StatisticsText(step.graph);
  out += fmt::format("The step runs in {}, chosen of:\n", chosen);
  const std::map<std::string, int> count = CountOutcomes(step.tried);
  const auto stands_alone = [&](const TriedStructure& tried) {
    return count.at(tried.outcome) <= kMostAlike;
  };
  size_t width = 16;
  for (const TriedStructure& tried : step.tried) {
    if (stands_alone(tried)) {
      width = std::max(width, StructureWords(tried).size());
    }
  }
  for (const TriedStructure& tried : step.tried) {
    if (!stands_alone(tried)) continue;
    out += fmt::format("  {:<{}}{}\n", StructureWords(tried), width + 2,
                       tried.outcome);
  }
  for (const auto& [outcome, structures] : count) {
    if (structures <= kMostAlike) continue;
    out += fmt::format("  {:<{}}{}\n", absl::StrCat(structures, " others"),
                       width + 2, outcome);
  }
  return out;
}

void AddStructure(const PlannedStep& step, nlohmann::ordered_json* out) {
  const std::vector<std::string> splits = SplitTexts(step.graph);
  if (step.tried.empty() && models::MicroBatchesOf(step.graph) == 1 &&
      splits.empty()) {
    return;
  }
  (*out)["micro_batches"] = models::MicroBatchesOf(step.graph);
  if (passes::HasOwnStatistics(step.graph)) {
    (*out)["micro_batch_statistics"] = true;
  }
  if (!splits.empty()) (*out)["splits"] = splits;
  if (step.tried.empty()) return;
  (*out)["structures"] = nlohmann::ordered_json::array();
  for (const TriedStructure& tried : step.tried) {
    nlohmann::ordered_json entry = {{"micro_batches", tried.micro_batches},
                                    {"outcome", tried.outcome}};
    if (!tried.splits.empty()) entry["splits"] = tried.splits;
    (*out)["structures"].push_back(std::move(entry));
  }
}

std::string StructuresFront(const std::vector<Swept>& all) {
  std::vector<std::pair<const planner::Plan*, std::string>> points;
  for (const Swept& swept : all) {
    for (const ParetoPoint& point : swept.points) {
      points.emplace_back(&point.plan, StructureWords(swept.step.graph));
    }
  }
  std::stable_sort(
      points.begin(), points.end(), [](const auto& a, const auto& b) {
        return std::pair(a.first->budget_bytes, a.first->predicted.step_ns) <
               std::pair(b.first->budget_bytes, b.first->predicted.step_ns);
      });
  std::string out = fmt::format("{:>10}{:>10}   {}\n", "budget", "step", "in");
  const planner::Plan* last = nullptr;
  for (const auto& [plan, structure] : points) {
    if (last != nullptr && plan->predicted.step_ns >= last->predicted.step_ns) {
      continue;
    }
    last = plan;
    out += fmt::format("{:>10}{:>10}   {}\n", FormatBytes(plan->budget_bytes),
                       FormatNs(plan->predicted.step_ns), structure);
  }
  return out;
}

}  // namespace loadline::tools
