// Results of a sweep, as a table and as JSON.
#ifndef LOADLINE_TOOLS_REPORT_SWEEP_OUTPUT_H_
#define LOADLINE_TOOLS_REPORT_SWEEP_OUTPUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "nlohmann/json_fwd.hpp"
#include "tools/pipeline/planned_step.h"
#include "tools/pipeline/sweep.h"
#include "tools/report/document.h"

namespace loadline::tools {

// One swept size; `step.plan` is the plan that the report shows.
struct Swept {
  PlannedStep step;
  std::vector<ParetoPoint> points;
};

// One line per point, at most 80 columns wide.
std::string ParetoTable(const PlannedStep& step,
                        const std::vector<ParetoPoint>& points, bool measured);

// loadline.sweep/1 (docs/schemas/sweep.json): the Pareto fronts of one or
// several sizes, or the largest size that fits.
nlohmann::ordered_json SweepJson(const std::vector<Swept>& all,
                                 int64_t steps_run);
nlohmann::ordered_json LargestJson(const PlannedStep& step,
                                   const ParetoPoint& point,
                                   const Largest& found, int64_t steps_run);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_REPORT_SWEEP_OUTPUT_H_
