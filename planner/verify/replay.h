// The replay with what Verify needs besides the prediction, and the interface
// through which others observe its events (Replay in verify.h takes one).
#ifndef LOADLINE_PLANNER_VERIFY_REPLAY_H_
#define LOADLINE_PLANNER_VERIFY_REPLAY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "planner/problem/ids.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"
#include "planner/verify/verify_facts.h"

namespace loadline::planner {

struct ReplayResult {
  Prediction prediction;
  // Most bytes of host buffers alive at one moment, by the same rule.
  int64_t host_peak_bytes = 0;
};

// The events of a replay, in their order. Every default does nothing.
class ReplayObserver {
 public:
  virtual ~ReplayObserver() = default;

  virtual void StepStarts(StepId /*step*/, double /*now_ns*/) {}
  // Called before the buffers whose last access is this step are freed.
  virtual void StepEnds(StepId /*step*/, double /*now_ns*/) {}

  // A buffer becomes alive, or stops being alive.
  virtual void Enters(BufferId /*buffer*/) {}
  virtual void Leaves(BufferId /*buffer*/) {}
  // In place: the output takes over the input's bytes, which stops being alive.
  virtual void PassesOn(BufferId /*in*/, BufferId /*out*/) {}

  // All steps of this moment have started; so many device bytes are alive.
  virtual void Counts(double /*now_ns*/, int64_t /*device_bytes*/) {}
};

// Needs a valid problem, CheckReferences, and the plan's facts. Errors: a copy
// without copy rates, a sum beyond 64 bits.
absl::StatusOr<ReplayResult> ReplaySteps(const Problem& problem,
                                         const Plan& plan,
                                         const PlanFacts& facts,
                                         ReplayObserver* observer = nullptr);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_VERIFY_REPLAY_H_
