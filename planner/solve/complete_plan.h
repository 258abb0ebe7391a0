// What a plan says beside its schedule: prediction, proven bounds, reasons.
#ifndef LOADLINE_PLANNER_SOLVE_COMPLETE_PLAN_H_
#define LOADLINE_PLANNER_SOLVE_COMPLETE_PLAN_H_

#include <cstdint>

#include "absl/status/status.h"
#include "planner/base/stop.h"
#include "planner/bound/bound.h"
#include "planner/problem/plan.h"
#include "planner/schedule/schedule.h"
#include "planner/schedule/search_model.h"

namespace loadline::planner {

// Bounds cover every plan that the problem permits, whatever the options: the
// bounds in a plan file then depend on its problem alone.
SearchModel ModelOfAllPlans(const Problem& problem);

// Of the bound on the step and of its certificate.
struct ProofLimit {
  // The nodes' own times alone, without cuts.
  static constexpr int64_t kNoCuts = -1;

  int64_t work = 0;
  Stop bound, certificate;
  // Found already, perhaps of fewer plans than the problem permits: what the
  // certificate of its cuts proves counts.
  const StepBound* known = nullptr;
};

// Sets prediction (by replay), bounds and certificate, and verifies the plan.
absl::Status PredictAndVerify(const Problem& problem, const ProofLimit& limit,
                              Plan& plan);

// The same, and the reason of every decision.
absl::Status CompletePlan(const SearchModel& model, const Schedule& schedule,
                          const ProofLimit& limit, Plan& plan);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SOLVE_COMPLETE_PLAN_H_
