// Runs the plans of a sweep, and predicts them with times measured meanwhile.
#ifndef LOADLINE_TOOLS_PIPELINE_MEASURE_PARETO_H_
#define LOADLINE_TOOLS_PIPELINE_MEASURE_PARETO_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "tools/pipeline/pareto_point.h"
#include "tools/pipeline/planned_step.h"

namespace loadline::tools {

// Runs `steps` steps at each point, in rounds over all points; each round also
// measures operators and copies. Afterwards `step` has these times, and all
// plans have predictions based on them. A point whose plan is now slower than
// that of a smaller budget gets the latter. Does nothing if `steps` is 0.
// Errors: those of Measure, MeasureNow and Reprice.
absl::Status MeasurePareto(const StepFlags& flags, int64_t steps,
                           PlannedStep* step, std::vector<ParetoPoint>* points,
                           const std::atomic<bool>* stop);

// A machine with the mean of the middle rounds for each operator and the
// copies. Requires at least one round, all with the same operators.
planner::Machine MiddleOf(const std::vector<planner::Machine>& rounds);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_MEASURE_PARETO_H_
