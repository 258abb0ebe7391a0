// Runs a planned step to measure it, not to train.
#ifndef LOADLINE_TOOLS_PIPELINE_MEASURE_PLAN_H_
#define LOADLINE_TOOLS_PIPELINE_MEASURE_PLAN_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "executor/device/device.h"
#include "tools/pipeline/planned_step.h"

namespace loadline::tools {

struct Measured {
  int64_t steps = 0;
  int64_t step_ns = 0;  // median
  int64_t arena_bytes = 0;
  std::vector<executor::TraceSpan> spans;  // of the last step, by plan step
};

// Trains `steps` steps of `step.plan` on --data, on a device of its own, and
// discards the weights. Errors: those of LoadData, Load and Train; OutOfRange:
// more bytes than the budget were used; Cancelled.
absl::StatusOr<Measured> Measure(const PlannedStep& step,
                                 const StepFlags& flags, int64_t steps,
                                 const std::atomic<bool>* stop);

// Combines rounds: the mean of the middle half of their step times, the sum of
// their steps, and the spans of the median round. Requires at least one.
Measured Together(std::vector<Measured> rounds);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_MEASURE_PLAN_H_
