// The table of effort.h, and that Solve and SolveSmallest follow it.
#include "planner/solve/effort.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "planner/bound/bound.h"
#include "planner/solve/solve.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

// As many as no limit per node matters.
constexpr int64_t kNodes = 1000;

TEST(PolicyOf, IsTheTable) {
  const int64_t bound_work = StepBoundOptions().work_limit;
  const EffortPolicy normal = PolicyOf(Effort::kNormal, kNodes, {}, {});
  EXPECT_EQ(normal.work_limit, 25'000'000);
  EXPECT_EQ(normal.bound_work_limit, bound_work);
  EXPECT_EQ(normal.retries, 1);
  EXPECT_EQ(normal.retry_factor, 2);
  EXPECT_EQ(normal.long_stall_share, 0);
  const EffortPolicy quick = PolicyOf(Effort::kQuick, kNodes, {}, {});
  EXPECT_EQ(quick.work_limit, 300'000);
  EXPECT_EQ(quick.bound_work_limit, bound_work * 3 / 100);
  EXPECT_EQ(quick.retries, 0);
  const EffortPolicy thorough = PolicyOf(Effort::kThorough, kNodes, {}, {});
  EXPECT_EQ(thorough.work_limit, 25'000'000);
  EXPECT_EQ(thorough.retries, 2);
  EXPECT_EQ(thorough.retry_factor, 2);
  EXPECT_EQ(thorough.long_stall_share, 0.05);
  EXPECT_EQ(thorough.stall_factor, 4);
  const EffortPolicy moderate = PolicyOf(Effort::kModerate, kNodes, {}, {});
  EXPECT_EQ(moderate.work_limit, 2'000'000);
  EXPECT_EQ(moderate.bound_work_limit, bound_work / 5);
  EXPECT_EQ(moderate.retries, 2);
  EXPECT_EQ(moderate.retry_factor, 4);
  EXPECT_EQ(moderate.long_stall_share, 0.05);
  EXPECT_EQ(moderate.stall_factor, 8);
}

TEST(PolicyOf, LimitsTheSearchOfSmallProblemsButNotTheirBound) {
  const EffortPolicy small = PolicyOf(Effort::kNormal, 10, {}, {});
  EXPECT_EQ(small.work_limit, 3'000'000);
  EXPECT_EQ(small.bound_work_limit, StepBoundOptions().work_limit);
  EXPECT_EQ(PolicyOf(Effort::kQuick, 0, {}, {}).work_limit, 0);
  EXPECT_EQ(PolicyOf(Effort::kNormal, 0, {}, {}).work_limit, 0);
  EXPECT_EQ(PolicyOf(Effort::kNormal, 10, 2'000'000, {}).work_limit, 2'000'000);
}

TEST(PolicyOf, GivenWorkReplacesTheFirstSearchAndShortensTheBound) {
  const int64_t bound_work = StepBoundOptions().work_limit;
  const EffortPolicy normal = PolicyOf(Effort::kNormal, kNodes, 2'000'000, {});
  EXPECT_EQ(normal.work_limit, 2'000'000);
  EXPECT_EQ(normal.bound_work_limit, bound_work / 5);
  EXPECT_EQ(PolicyOf(Effort::kQuick, kNodes, 100'000'000, {}).bound_work_limit,
            bound_work);
  const EffortPolicy none = PolicyOf(Effort::kQuick, kNodes, 0, 7);
  EXPECT_EQ(none.work_limit, 0);
  EXPECT_EQ(none.bound_work_limit, 7);
}

struct Outcome {
  bool met = false;
  int64_t smallest_met_bytes = 0;
  std::string json;
};

Outcome SolveWith(const Problem& problem, int64_t budget_bytes, Effort effort) {
  SolveOptions options;
  options.budget_bytes = budget_bytes;
  options.work_limit = 1'000;
  options.bound_work_limit = 0;
  options.effort = effort;
  const absl::StatusOr<Plan> plan = Solve(problem, options);
  if (plan.ok()) return {true, 0, PlanToJson(*plan, problem)};
  const auto facts = InfeasibilityOf(plan.status());
  return {false, facts ? facts->smallest_met_bytes : 0, ""};
}

// What a lesser effort finds, a greater one keeps; where it finds nothing, the
// greater one looks further down.
TEST(Solve, GreaterEffortsMeetEveryBudgetOfLessOnes) {
  int met = 0, missed = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Problem problem =
        RandomProblem(seed, 20 + static_cast<int>(seed % 20), true, true);
    const int64_t bound_bytes = FindPeakFloor(problem, {})->bytes;
    for (int percent : {100, 102, 105}) {
      SCOPED_TRACE(absl::StrCat("seed ", seed, " at ", percent, " %"));
      const int64_t bytes = bound_bytes * percent / 100;
      const Outcome quick = SolveWith(problem, bytes, Effort::kQuick);
      const Outcome normal = SolveWith(problem, bytes, Effort::kNormal);
      const Outcome thorough = SolveWith(problem, bytes, Effort::kThorough);
      EXPECT_LE(quick.met, normal.met);
      EXPECT_LE(normal.met, thorough.met);
      if (quick.met) {
        EXPECT_EQ(quick.json, normal.json);
      }
      if (!normal.met && !quick.met) {
        EXPECT_LE(normal.smallest_met_bytes, quick.smallest_met_bytes);
      }
      met += normal.met;
      missed += !normal.met;
    }
  }
  EXPECT_GT(met, 0);
  EXPECT_GT(missed, 0);
}

TEST(SolveSmallest, GreaterEffortsGoLower) {
  int lower = 0;
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    const Problem problem = RandomProblem(seed, 30, true, true);
    SolveOptions options;
    options.work_limit = 1'000;
    options.bound_work_limit = 0;
    const auto smallest = [&](Effort effort) {
      options.effort = effort;
      const absl::StatusOr<Plan> plan = SolveSmallest(problem, options);
      EXPECT_TRUE(plan.ok()) << plan.status();
      return plan.ok() ? plan->arena_bytes : -1;
    };
    const int64_t quick_bytes = smallest(Effort::kQuick);
    const int64_t normal_bytes = smallest(Effort::kNormal);
    const int64_t thorough_bytes = smallest(Effort::kThorough);
    const int64_t moderate_bytes = smallest(Effort::kModerate);
    EXPECT_LE(normal_bytes, quick_bytes) << seed;
    EXPECT_LE(thorough_bytes, normal_bytes) << seed;
    EXPECT_LE(moderate_bytes, quick_bytes) << seed;
    lower += (normal_bytes < quick_bytes) + (thorough_bytes < normal_bytes) +
             (moderate_bytes < quick_bytes);
  }
  EXPECT_GT(lower, 2);
}

// A thorough search replaces a plan that stalls long by a better one only.
TEST(Solve, ThoroughSearchesAgainWhereAPlanStallsLong) {
  int stalls = 0, better = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Problem problem = RandomProblem(seed, 30, true, true);
    SolveOptions options;
    options.budget_bytes =
        KeepEverything(problem)->predicted.peak_bytes * 60 / 100;
    options.work_limit = 1'000;
    options.bound_work_limit = 0;
    options.allow_recompute = false;
    const auto smallest_bytes = [&](Effort effort) {
      SolveOptions smallest = options;
      smallest.effort = effort;
      return SolveSmallest(problem, smallest)->arena_bytes;
    };
    const absl::StatusOr<Plan> normal = Solve(problem, options);
    options.effort = Effort::kThorough;
    const absl::StatusOr<Plan> thorough = Solve(problem, options);
    if (!normal.ok()) continue;
    ASSERT_TRUE(thorough.ok());
    EXPECT_LE(thorough->predicted.step_ns, normal->predicted.step_ns);
    const bool stalled =
        20 * normal->predicted.stall_ns > normal->predicted.step_ns;
    // A tight budget's plan may come from the smallest plan, which a greater
    // effort looks for harder.
    const bool same_smallest =
        smallest_bytes(Effort::kNormal) == smallest_bytes(Effort::kThorough);
    if (!stalled && same_smallest) {
      EXPECT_EQ(PlanToJson(*thorough, problem), PlanToJson(*normal, problem));
    }
    stalls += stalled;
    better += thorough->predicted.step_ns < normal->predicted.step_ns;
  }
  EXPECT_GT(stalls, 2);
  EXPECT_GT(better, 0);
}

}  // namespace
}  // namespace loadline::planner
