// Tested in take_faster_test.cc.
#include "planner/solve/take_faster.h"

namespace loadline::planner {

bool TakeFaster(const Plan& smaller, Plan* plan) {
  if (plan->predicted.step_ns <= smaller.predicted.step_ns) return false;
  const Bounds bounds = plan->bounds;
  const int64_t budget_bytes = plan->budget_bytes;
  *plan = smaller;
  plan->bounds = bounds;
  plan->budget_bytes = budget_bytes;
  return true;
}

}  // namespace loadline::planner
