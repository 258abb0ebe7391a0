// The table and the documents of a sweep. Tested by
// tests/end_to_end/sweep_test.cc and against docs/schemas/sweep.json.
#include "tools/report/sweep_output.h"

#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "tools/cli/reproduce.h"
#include "tools/cli/units.h"

namespace loadline::tools {

using Json = nlohmann::ordered_json;

std::string ParetoTable(const PlannedStep& step,
                        const std::vector<ParetoPoint>& points, bool measured) {
  const planner::Prediction& keep = step.keep_everything.predicted;
  std::string out =
      fmt::format("{:>10}{:>9}{:>9}{:>9}{:>10}{:>11}{:>9}{:>9}\n", "budget",
                  "share", "step", "slower", "again", "copied", "waiting",
                  measured ? "measured" : "");
  for (const ParetoPoint& point : points) {
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

Json SweepJson(const std::vector<Swept>& all, int64_t steps_run) {
  Json out;
  out["format"] = "loadline.sweep/1";
  out["command"] = CommandToReproduce();
  out["problem"] = all[0].step.problem.name;
  out["steps_run"] = steps_run;
  out["points"] = Json::array();
  out["fronts"] = Json::array();
  for (const Swept& swept : all) {
    const planner::Plan& smallest = swept.points.front().plan;
    Json front;
    AddAxis(swept.points[0], &front);
    front["smallest_budget_bytes"] = smallest.budget_bytes;
    front["bound_peak_bytes"] = smallest.bounds.peak_bytes;
    front["keep_everything_peak_bytes"] =
        swept.step.keep_everything.predicted.peak_bytes;
    front["keep_everything_arena_bytes"] =
        swept.step.keep_everything.arena_bytes;
    front["keep_everything_step_ns"] =
        swept.step.keep_everything.predicted.step_ns;
    out["fronts"].push_back(std::move(front));
    for (const ParetoPoint& point : swept.points) {
      out["points"].push_back(ParetoPointJson(point));
    }
  }
  return out;
}

Json LargestJson(const PlannedStep& step, const ParetoPoint& point,
                 const Largest& found, int64_t steps_run) {
  Json out;
  out["format"] = "loadline.sweep/1";
  out["command"] = CommandToReproduce();
  out["problem"] = step.problem.name;
  out["steps_run"] = steps_run;
  out["axis"] = point.axis;
  out["largest"] = found.size;
  out["smallest_not_met"] = found.smallest_not;
  if (point.axis == kBatchAxis) {
    out["largest_batch"] = found.size;
    out["smallest_batch_not_met"] = found.smallest_not;
  }
  out["points"] = Json::array();
  out["points"].push_back(ParetoPointJson(point));
  return out;
}

}  // namespace loadline::tools
