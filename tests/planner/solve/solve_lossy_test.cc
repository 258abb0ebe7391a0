// Allowing lossy codecs, of which only some may be used together, never makes
// a plan slower or the smallest larger, and makes some of them better.
#include "planner/solve/solve_lossy.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "planner/solve/choose_lossy.h"
#include "planner/solve/solve.h"
#include "planner/verify/verify.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

// At most two of its lossy codecs may be used together.
Problem Limited(uint64_t seed) {
  Problem problem = RandomProblem(seed, 25, false, false);
  AddRandomChoices(seed, problem);
  for (Node& node : problem.nodes) node.variants.clear();
  for (Value& value : problem.values) {
    for (Codec& codec : value.stash) {
      if (!codec.lossless) codec.error = 0.45;
    }
  }
  return problem;
}

SolveOptions Quick() {
  SolveOptions options;
  options.work_limit = 2'000;
  options.bound_work_limit = 0;
  return options;
}

TEST(SolveLossy, TheSmallestIsNeverLarger) {
  int smaller = 0, limited = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Problem problem = Limited(seed);
    limited += ErrorsExceedLimit(problem);
    SolveOptions options = Quick();
    const auto without = SolveSmallest(problem, options);
    ASSERT_TRUE(without.ok()) << without.status();
    options.permissions.lossy = true;
    const auto with = SolveSmallest(problem, options);
    ASSERT_TRUE(with.ok()) << with.status();
    EXPECT_LE(with->arena_bytes, without->arena_bytes) << seed;
    EXPECT_TRUE(Verify(problem, *with).ok()) << Verify(problem, *with);
    smaller += with->arena_bytes < without->arena_bytes;
  }
  EXPECT_GT(limited, 5);
  EXPECT_GT(smaller, 1);
}

TEST(SolveLossy, NoBudgetGetsASlowerPlanAndALargerOneNever) {
  int faster = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const Problem problem = Limited(seed);
    const auto all = KeepEverything(problem);
    ASSERT_TRUE(all.ok()) << all.status();
    int64_t larger_step_ns = 0;
    for (int percent : {90, 75, 60, 50, 40}) {
      SolveOptions options = Quick();
      options.budget_bytes = all->predicted.peak_bytes / 100 * percent;
      const auto without = Solve(problem, options);
      options.permissions.lossy = true;
      const auto with = Solve(problem, options);
      if (!with.ok()) {
        EXPECT_FALSE(without.ok()) << seed << " at " << percent << " %";
        const auto facts = InfeasibilityOf(with.status());
        const auto facts_without = InfeasibilityOf(without.status());
        ASSERT_TRUE(facts && facts_without) << with.status();
        EXPECT_LE(facts->smallest_met_bytes, facts_without->smallest_met_bytes);
        break;
      }
      EXPECT_LE(with->arena_bytes, options.budget_bytes);
      EXPECT_GE(with->predicted.step_ns, larger_step_ns)
          << seed << " at " << percent << " %";
      larger_step_ns = with->predicted.step_ns;
      if (!without.ok()) {
        ++faster;
        continue;
      }
      EXPECT_LE(with->predicted.step_ns, without->predicted.step_ns)
          << seed << " at " << percent << " %";
      faster += with->predicted.step_ns < without->predicted.step_ns;
    }
  }
  EXPECT_GT(faster, 1);
}

}  // namespace
}  // namespace loadline::planner
