// Time limits and cancelling: the best plan so far, or a clear error.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "planner/schedule/search_tuning.h"
#include "planner/solve/solve.h"
#include "planner/verify/verify.h"
#include "tests/planner/support/layered_graph.h"
#include "tests/planner/support/random_problem.h"
#include "tests/planner/support/solve_samples.h"

namespace loadline::planner {
namespace {

TEST(Solve, CancelledBeforeAnyPlanIsDeadlineExceeded) {
  const std::atomic<bool> cancel = true;
  int checked = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Problem problem = SeededProblem(seed);
    const absl::StatusOr<Plan> all = KeepEverything(problem);
    SolveOptions options;
    options.budget_bytes = Percent(*all, 60);
    options.work_limit = kWork;
    options.bound_work_limit = 0;
    const absl::StatusOr<Plan> plan = Solve(problem, options);
    options.cancel = &cancel;
    const absl::StatusOr<Plan> stopped = Solve(problem, options);
    if (!plan.ok() ||
        plan->predicted.stall_ns + plan->predicted.recompute_ns == 0) {
      continue;
    }
    ++checked;
    EXPECT_EQ(stopped.status().code(), absl::StatusCode::kDeadlineExceeded);
  }
  EXPECT_GT(checked, 3);
}

// However little time there is, the plan is verified and fits, or there is
// none; more time never makes it slower than what progress has told.
TEST(Solve, TimeLimitsGiveVerifiedPlansOrNone) {
  int met = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Problem problem = SeededProblem(seed);
    const absl::StatusOr<Plan> all = KeepEverything(problem);
    ASSERT_TRUE(all.ok());
    for (int microseconds : {0, 100, 3'000, 30'000}) {
      SolveOptions options;
      options.budget_bytes = Percent(*all, 75);
      options.time_limit = absl::Microseconds(microseconds);
      int64_t best_ns = INT64_MAX;
      options.progress = [&](const Progress& progress) {
        best_ns = std::min(best_ns, progress.step_ns);
      };
      const absl::StatusOr<Plan> plan = Solve(problem, options);
      SCOPED_TRACE(absl::StrCat("seed ", seed, ", ", microseconds, " us"));
      if (!plan.ok()) {
        EXPECT_EQ(best_ns, INT64_MAX);
        // Where no search can find any, none is waited for.
        const auto facts = InfeasibilityOf(plan.status());
        EXPECT_TRUE(absl::IsDeadlineExceeded(plan.status()) ||
                    (facts.has_value() &&
                     facts->smallest_met_bytes > options.budget_bytes))
            << plan.status();
        continue;
      }
      ++met;
      EXPECT_TRUE(Verify(problem, *plan).ok());
      EXPECT_LE(plan->arena_bytes, options.budget_bytes);
      EXPECT_NEAR(static_cast<double>(plan->predicted.step_ns),
                  static_cast<double>(best_ns), 1.0);
    }
  }
  EXPECT_GT(met, 0);  // how many is a matter of the machine
}

// An hour would be noticed.
TEST(Solve, TimeLimitIsNotUsedUpOnceThePlanIsProvenOptimal) {
  int optimal = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Problem problem = RandomProblem(seed, 12, false, false);
    const absl::StatusOr<Plan> all = KeepEverything(problem);
    ASSERT_TRUE(all.ok());
    SolveOptions options;
    options.budget_bytes = Percent(*all, 70);
    options.work_limit = kWork;
    options.bound_work_limit =
        PolicyOf(Effort::kNormal, 12, {}, {}).bound_work_limit;
    const absl::StatusOr<Plan> plan = Solve(problem, options);
    const bool proven =
        plan.ok() && plan->predicted.step_ns == plan->bounds.step_ns;
    options.time_limit = absl::Hours(1);
    if (proven && plan->predicted.recompute_ns > 0) {
      ++optimal;
      const absl::StatusOr<Plan> again = Solve(problem, options);
      ASSERT_TRUE(again.ok()) << seed << ": " << again.status();
      EXPECT_EQ(again->predicted.step_ns, plan->predicted.step_ns) << seed;
    }
  }
  EXPECT_GT(optimal, 2);
}

// Nor for what a bound rules out.
TEST(Solve, TimeLimitIsNotUsedUpWhereNoPlanExists) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Problem problem = RandomProblem(seed, 12, false, false);
    SolveOptions options;
    options.budget_bytes = 1;
    options.work_limit = kWork;
    options.time_limit = absl::Hours(1);
    const auto facts = InfeasibilityOf(Solve(problem, options).status());
    ASSERT_TRUE(facts.has_value()) << seed;
    EXPECT_GT(facts->proven_bound_bytes, 1);
    EXPECT_GE(facts->smallest_met_bytes, facts->proven_bound_bytes);
    options.time_limit = absl::ZeroDuration();
    EXPECT_TRUE(InfeasibilityOf(Solve(problem, options).status()).has_value());
  }
}

// Without time there is no search, and the bytes show it.
TEST(SolveSmallest, StopsAtItsTimeLimit) {
  int larger = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Problem problem = SeededProblem(seed);
    SolveOptions options;
    options.work_limit = kWork;
    const absl::StatusOr<Plan> searched = SolveSmallest(problem, options);
    ASSERT_TRUE(searched.ok()) << seed << ": " << searched.status();
    options.time_limit = absl::ZeroDuration();
    const absl::StatusOr<Plan> limited = SolveSmallest(problem, options);
    ASSERT_TRUE(limited.ok()) << seed << ": " << limited.status();
    EXPECT_TRUE(Verify(problem, *limited).ok());
    if (limited->arena_bytes > searched->arena_bytes) ++larger;
  }
  EXPECT_GT(larger, 0);
}

// Within some times what a search with little work takes, on however slow a
// machine. With all of its work, the first budget that is tried, which has no
// plan here, would take all of the time and leave 30 % more bytes. Which of two
// short searches ends a little lower is luck.
TEST(SolveSmallest, FindsFewBytesWithinATimeLimit) {
  const Problem problem = LayeredGraph(1, 120);
  SolveOptions little;
  little.work_limit =
      static_cast<int64_t>(SearchTuning::Bisection().first_timed_work);
  little.allow_retries = false;
  const absl::Time begin = absl::Now();
  const absl::StatusOr<Plan> found = SolveSmallest(problem, little);
  ASSERT_TRUE(found.ok()) << found.status();
  SolveOptions options;
  options.time_limit = 5 * (absl::Now() - begin);
  const absl::StatusOr<Plan> smallest = SolveSmallest(problem, options);
  ASSERT_TRUE(smallest.ok()) << smallest.status();
  EXPECT_LE(smallest->arena_bytes, found->arena_bytes * 21 / 20);
}

TEST(Solve, CancelKeepsTheBestPlanSoFar) {
  int stopped = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Problem problem = SeededProblem(seed);
    const absl::StatusOr<Plan> all = KeepEverything(problem);
    ASSERT_TRUE(all.ok());
    std::atomic<bool> cancel = false;
    SolveOptions options;
    options.budget_bytes = Percent(*all, 65);
    options.work_limit = kWork;
    options.bound_work_limit = 0;
    options.cancel = &cancel;
    int64_t first_ns = -1;
    options.progress = [&](const Progress& progress) {
      if (first_ns < 0) first_ns = progress.step_ns;
      cancel = true;
    };
    const absl::StatusOr<Plan> plan = Solve(problem, options);
    if (first_ns < 0) continue;
    ++stopped;
    ASSERT_TRUE(plan.ok()) << seed << ": " << plan.status();
    EXPECT_TRUE(Verify(problem, *plan).ok()) << seed;
    EXPECT_LE(plan->predicted.step_ns, first_ns) << seed;
  }
  EXPECT_GT(stopped, 10);
}

TEST(Solve, ProgressTellsImprovingPlans) {
  const Problem problem = SeededProblem(38);
  const absl::StatusOr<Plan> all = KeepEverything(problem);
  SolveOptions options;
  options.budget_bytes = Percent(*all, 70);
  std::vector<int64_t> steps;
  options.progress = [&](const Progress& progress) {
    steps.push_back(progress.step_ns);
    EXPECT_GE(progress.step_ns, progress.bound_step_ns);
  };
  ASSERT_TRUE(Solve(problem, options).ok());
  ASSERT_FALSE(steps.empty());
  for (size_t i = 1; i < steps.size(); ++i) EXPECT_LE(steps[i], steps[i - 1]);
}

}  // namespace
}  // namespace loadline::planner
