// Measures operators inside the step that they will run in.
#ifndef LOADLINE_EXECUTOR_MEASURE_CALIBRATE_STEP_H_
#define LOADLINE_EXECUTOR_MEASURE_CALIBRATE_STEP_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "executor/device/device.h"
#include "executor/measure/calibrate.h"
#include "models/graph.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"

namespace loadline::executor {

// As Calibrate, for all operators that the plan runs. Runs one warm-up step and
// `options.runs` measured ones, on made-up inputs and the initial parameters.
// Ignores `options.evict_bytes`. Errors: those of Load and Run; Cancelled.
absl::StatusOr<std::map<std::string, int64_t>> CalibrateStep(
    const models::Graph& graph, const planner::Problem& problem,
    const planner::Plan& plan, Device& device,
    const CalibrateOptions& options = {});

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_MEASURE_CALIBRATE_STEP_H_
