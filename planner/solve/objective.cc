// Tested in objective_test.cc.
#include "planner/solve/objective.h"

#include <algorithm>

namespace loadline::planner {

int64_t ObjectiveNs(const Problem& problem, const Plan& plan) {
  if (!problem.machine.has_value()) return plan.predicted.step_ns;
  const auto copies = std::count_if(
      plan.steps.begin(), plan.steps.end(),
      [](const Step& step) { return step.kind == StepKind::kCopy; });
  return plan.predicted.step_ns + problem.machine->switch_ns * copies;
}

bool TakeFaster(const Problem& problem, const Plan& smaller, Plan* plan) {
  if (ObjectiveNs(problem, *plan) <= ObjectiveNs(problem, smaller)) {
    return false;
  }
  const Bounds bounds = plan->bounds;
  const int64_t budget_bytes = plan->budget_bytes;
  *plan = smaller;
  plan->bounds = bounds;
  plan->budget_bytes = budget_bytes;
  return true;
}

}  // namespace loadline::planner
