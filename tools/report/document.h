// The report as one JSON document, loadline.report/1 (docs/report.md):
// everything that the HTML page shows, except what the page can compute itself.
#ifndef LOADLINE_TOOLS_REPORT_DOCUMENT_H_
#define LOADLINE_TOOLS_REPORT_DOCUMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/graph.h"
#include "nlohmann/json_fwd.hpp"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"
#include "tools/pipeline/measure_plan.h"
#include "tools/pipeline/pareto_point.h"
#include "tools/pipeline/planned_step.h"

namespace loadline::tools {

struct ReportInput {
  const planner::Problem* problem = nullptr;
  const planner::Plan* keep_everything = nullptr;
  const planner::Plan* plan = nullptr;
  // Null for a plan without its model.
  const models::Graph* graph = nullptr;
  std::vector<std::string> model_tensors;
  const Measured* measured = nullptr;    // null: the plan was not run
  absl::Span<const ParetoPoint> pareto;  // by rising budget; may be empty
  // The smallest plan with recomputation only, for comparison; null: not
  // searched.
  const planner::Plan* recompute_only = nullptr;
  std::string command;                   // reproduces this report
  std::vector<std::string> assumptions;  // whole sentences
};

// The input that all reports share: the step, its plan, and this run's command.
// Without a graph if the step has none. `step` must outlive the result.
ReportInput InputOf(const PlannedStep& step);

// Tables are stored as columns: one array per field, all of equal length.
// Errors: those of Replay, for an invalid plan.
absl::StatusOr<nlohmann::ordered_json> ReportDocument(const ReportInput& input);

// Adds `axis` and `size` of a point that varies a dimension; also `batch` if
// that is the dimension.
void AddAxis(const ParetoPoint& point, nlohmann::ordered_json* out);

// The same fields for `sweep --json`.
nlohmann::ordered_json ParetoPointJson(const ParetoPoint& point);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_REPORT_DOCUMENT_H_
