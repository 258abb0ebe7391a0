// Validates the problem and the options, then runs one search or several
// (plan_search.h). Every plan is replayed and verified before it is returned.
// Tested in solve_test.cc.
#include "planner/solve/solve.h"

#include <iterator>
#include <utility>

#include "planner/base/status_macros.h"
#include "planner/layout/laid_out_schedule.h"
#include "planner/schedule/simulate.h"
#include "planner/search/search.h"
#include "planner/solve/complete_plan.h"
#include "planner/solve/infeasible.h"
#include "planner/solve/plan_search.h"
#include "planner/solve/solve_lossy.h"

namespace loadline::planner {
namespace {

// With at most so many nodes, the budget of the smallest plan is also solved as
// any other, from above: for the zoo's mlp (29 nodes) that gives 155 instead of
// 197 us. From unet (134) to GPT-12 (572) it gains nothing and takes three to
// eleven times as long.
constexpr size_t kMostSolvedAgain = 100;

absl::Status CheckOptions(const SolveOptions& options) {
  if (options.budget_bytes < 0 || options.work_limit.value_or(0) < 0 ||
      options.bound_work_limit.value_or(0) < 0) {
    return absl::InvalidArgumentError(
        "the budget and the work limits may not be negative");
  }
  if (options.threads < 0) {
    return absl::InvalidArgumentError("the threads may not be negative");
  }
  return absl::OkStatus();
}

EffortPolicy PolicyOf(const Problem& problem, const SolveOptions& options) {
  EffortPolicy policy = PolicyOf(options.effort, std::ssize(problem.nodes),
                                 options.work_limit, options.bound_work_limit);
  if (!options.allow_retries) {
    policy.retries = 0;
    policy.long_stall_share = 0;
  }
  return policy;
}

// EffortPolicy::stall_factor: one longer search where the plan stalls long.
absl::StatusOr<Plan> SearchAgainIfItStalls(const Problem& problem,
                                           const SolveOptions& options,
                                           absl::StatusOr<Plan> plan) {
  EffortPolicy policy = PolicyOf(problem, options);
  if (!plan.ok() || policy.long_stall_share == 0 || options.time_limit) {
    return plan;
  }
  const double long_stall_ns =
      policy.long_stall_share * static_cast<double>(plan->predicted.step_ns);
  if (static_cast<double>(plan->predicted.stall_ns) <= long_stall_ns) {
    return plan;
  }
  policy.work_limit = policy.work_limit > INT64_MAX / policy.stall_factor
                          ? INT64_MAX
                          : policy.work_limit * policy.stall_factor;
  const absl::StatusOr<Plan> longer = SearchPlan(problem, options, policy);
  return longer.ok() && longer->predicted.step_ns < plan->predicted.step_ns
             ? longer
             : plan;
}

absl::StatusOr<Plan> SolveOnce(const Problem& problem,
                               const SolveOptions& options) {
  return SearchAgainIfItStalls(
      problem, options,
      SearchPlan(problem, options, PolicyOf(problem, options)));
}

absl::StatusOr<Plan> SmallestOnce(const Problem& problem,
                                  const SolveOptions& options) {
  absl::StatusOr<Plan> smallest =
      SearchSmallestPlan(problem, options, PolicyOf(problem, options));
  if (!smallest.ok() || options.time_limit ||
      problem.nodes.size() > kMostSolvedAgain) {
    return smallest;
  }
  SolveOptions asked = options;
  asked.budget_bytes = smallest->budget_bytes;
  absl::StatusOr<Plan> faster = SolveOnce(problem, asked);
  return faster.ok() && faster->predicted.step_ns < smallest->predicted.step_ns
             ? faster
             : smallest;
}

}  // namespace

absl::StatusOr<Plan> Solve(const Problem& problem,
                           const SolveOptions& options) {
  LOADLINE_RETURN_IF_ERROR(ValidateProblem(problem));
  LOADLINE_RETURN_IF_ERROR(CheckOptions(options));
  if (MayUseLossyCodecs(problem, options)) {
    return SolveLossy(problem, options, SolveOnce, SmallestOnce);
  }
  return SolveOnce(problem, options);
}

absl::StatusOr<Plan> SolveSmallest(const Problem& problem,
                                   const SolveOptions& options) {
  LOADLINE_RETURN_IF_ERROR(ValidateProblem(problem));
  SolveOptions smallest = options;
  smallest.budget_bytes = 0;
  LOADLINE_RETURN_IF_ERROR(CheckOptions(smallest));
  if (MayUseLossyCodecs(problem, smallest)) {
    return SolveSmallestLossy(problem, smallest, SmallestOnce);
  }
  return SmallestOnce(problem, smallest);
}

absl::StatusOr<PeakFloor> FindPeakFloor(const Problem& problem,
                                        const SolveOptions& options) {
  LOADLINE_RETURN_IF_ERROR(ValidateProblem(problem));
  return FloorOf(MakeSearchModel(problem, ModelOptions(options)));
}

absl::StatusOr<Plan> KeepEverything(const Problem& problem) {
  LOADLINE_RETURN_IF_ERROR(ValidateProblem(problem));
  const SearchModel model =
      MakeSearchModel(problem, {false, false, Permissions::None(), {}});
  LOADLINE_ASSIGN_OR_RETURN(
      LaidOutSchedule laid_out,
      LayOutTightest(model, GivenOrder(model),
                     static_cast<double>(model.compute_ns),
                     model.tuning.layout.pack_work));
  Plan plan = std::move(laid_out.plan);
  plan.budget_bytes = laid_out.arena_bytes;
  // The plan is as fast as any: no program is needed to prove it.
  LOADLINE_RETURN_IF_ERROR(CompletePlan(model, laid_out.schedule, {}, plan));
  return plan;
}

absl::StatusOr<Plan> Reprice(const Problem& priced, Plan plan,
                             const SolveOptions& options) {
  LOADLINE_RETURN_IF_ERROR(ValidateProblem(priced));
  LOADLINE_RETURN_IF_ERROR(PredictAndVerify(
      priced, {PolicyOf(priced, options).bound_work_limit}, plan));
  return plan;
}

}  // namespace loadline::planner
