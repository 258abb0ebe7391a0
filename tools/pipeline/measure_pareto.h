// Running the plans of a sweep, and pricing them by the machine that ran them.
#ifndef LOADLINE_TOOLS_PIPELINE_MEASURE_PARETO_H_
#define LOADLINE_TOOLS_PIPELINE_MEASURE_PARETO_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "tools/pipeline/pareto_point.h"
#include "tools/pipeline/planned_step.h"

namespace loadline::tools {

// Really runs `steps` steps at each point, in rounds over all of them; each
// round also measures the operators and the copies. Then `step` has those
// prices, and all plans the predictions under them; a point whose plan is now
// slower than that of a smaller budget gets that one. Nothing where `steps` is
// 0. Errors: those of Measure, MeasureNow and Reprice.
absl::Status MeasurePareto(const StepFlags& flags, int64_t steps,
                           PlannedStep* step, std::vector<ParetoPoint>* points,
                           const std::atomic<bool>* stop);

// A machine with, for each operator and the copies, the middle of the rounds.
// Requires at least one, all with the same operators.
planner::Machine MiddleOf(const std::vector<planner::Machine>& rounds);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_MEASURE_PARETO_H_
