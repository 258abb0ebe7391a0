// Tested in solve_test.cc and solve_limits_test.cc.
#include "planner/solve/complete_plan.h"

#include <algorithm>
#include <utility>

#include "planner/base/status_macros.h"
#include "planner/certificate/check_certificate.h"
#include "planner/certify/certify_step.h"
#include "planner/solve/check_bounds.h"
#include "planner/solve/explain.h"
#include "planner/verify/verify.h"

namespace loadline::planner {

SearchModel ModelOfAllPlans(const Problem& problem) {
  return MakeSearchModel(problem,
                         {.permissions = {.lossy = true, .inexact = true}});
}

absl::Status PredictAndVerify(const Problem& problem, const ProofLimit& limit,
                              Plan& plan) {
  LOADLINE_ASSIGN_OR_RETURN(plan.predicted, Replay(problem, plan));
  if (!problem.addresses) plan.arena_bytes = plan.predicted.peak_bytes;
  plan.problem_sha256 = ProblemSha256(problem);
  const SearchModel all = ModelOfAllPlans(problem);
  plan.bounds.peak_bytes =
      std::min(BoundPeak(all).bytes, CertifiedPeakBytes(problem));
  StepBoundOptions options;
  options.budget_bytes = plan.budget_bytes;
  options.known_step_ns =
      limit.work == ProofLimit::kNoCuts ? 0 : plan.predicted.step_ns;
  options.work_limit = std::max<int64_t>(0, limit.work);
  options.stop = limit.bound;
  StepBound bound = BoundStepAt(all, options);
  // Only what is certified is written. The bound itself is checked as well: one
  // above the plan is an error of our own.
  plan.bounds.step_ns = bound.step_ns;
  LOADLINE_RETURN_IF_ERROR(CheckBounds(plan, bound.no_plan));
  if (limit.known != nullptr && limit.known->step_ns > bound.step_ns) {
    bound = *limit.known;
  }
  CertifiedBound certified = CertifyStep(problem, bound,
                                         {.budget_bytes = plan.budget_bytes,
                                          .work_limit = limit.work,
                                          .stop = limit.certificate});
  plan.bounds.step_ns = certified.step_ns;
  plan.certificate = std::move(certified.certificate);
  LOADLINE_RETURN_IF_ERROR(CheckBounds(plan, false));
  return Verify(problem, plan);
}

absl::Status CompletePlan(const SearchModel& model, const Schedule& schedule,
                          const ProofLimit& limit, Plan& plan) {
  plan.decisions = Explain(model, schedule);
  return PredictAndVerify(*model.problem, limit, plan);
}

}  // namespace loadline::planner
