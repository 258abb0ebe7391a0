// A plan's replay in detail: when each step runs and when each buffer is live.
// The planner's own replay gives totals only.
#ifndef LOADLINE_TOOLS_PIPELINE_TIMELINE_H_
#define LOADLINE_TOOLS_PIPELINE_TIMELINE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "executor/device/device.h"
#include "planner/problem/ids.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"

namespace loadline::tools {

// The moment with most bytes while one compute step is the latest to have
// started.
struct MemorySample {
  planner::StepId step{-1};
  int64_t time_ns = 0;
  int64_t live_bytes = 0;
};

// Lifetime of a buffer in samples, [from, to). Before `ready` it is being
// copied in; from `done` on it only waits for its copy out to end. Bytes taken
// over in place belong to the output from then on.
struct BufferLife {
  int32_t from = 0;
  int32_t ready = 0;
  int32_t done = 0;
  int32_t to = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

struct Timeline {
  std::vector<executor::TraceSpan> spans;  // by step of the plan
  std::vector<MemorySample> samples;       // by step of the compute lane
  std::vector<BufferLife> lives;           // by buffer of the plan
};

// Follows the rules of loadline.plan/1 (docs/formats.md, "Replay"): the last
// span ends at predicted.step_ns less the overhead of copies, and the largest
// sample has predicted.peak_bytes. Requires a plan that Verify accepts. Errors:
// those of Replay.
absl::StatusOr<Timeline> ReplayTimeline(const planner::Problem& problem,
                                        const planner::Plan& plan);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_TIMELINE_H_
