// The replay with what Verify needs besides the prediction. Internal.
#ifndef LOADLINE_PLANNER_REPLAY_H_
#define LOADLINE_PLANNER_REPLAY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "planner/plan.h"
#include "planner/problem.h"
#include "planner/verify_facts.h"

namespace loadline::planner {

struct ReplayResult {
  Prediction prediction;
  // Most bytes of host buffers alive at one moment, by the same rule.
  int64_t host_peak_bytes = 0;
};

// Needs a valid problem, CheckReferences, and the plan's facts. Errors: a copy
// without copy rates, a sum beyond 64 bits.
absl::StatusOr<ReplayResult> ReplaySteps(const Problem& problem,
                                         const Plan& plan,
                                         const PlanFacts& facts);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_REPLAY_H_
