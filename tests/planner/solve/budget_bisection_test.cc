// Budgets between the bound and the first round point above it. The rest of the
// walk: solve_test.cc.
#include "planner/solve/budget_bisection.h"

#include <cstdint>

#include "gtest/gtest.h"
#include "planner/solve/solve.h"
#include "tests/planner/support/random_problem.h"
#include "tests/planner/support/solve_samples.h"

namespace loadline::planner {
namespace {

TEST(BudgetBisection, LargerBudgetsAreNeverSlowerJustAboveTheBound) {
  int met = 0, apart = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Problem problem = RandomProblem(seed, 5, seed % 3 == 0, true);
    problem.addresses = false;
    const absl::StatusOr<Plan> all = KeepEverything(problem);
    ASSERT_TRUE(all.ok());
    const int64_t bound_bytes = FindPeakFloor(problem, {})->bytes;
    const int64_t grain_bytes = 1 + all->predicted.peak_bytes / 4000;
    int64_t last_step_ns = INT64_MAX;
    for (int grains = 0; grains <= 12; ++grains) {
      SolveOptions options;
      options.budget_bytes = bound_bytes + grains * grain_bytes;
      options.work_limit = kWork;
      options.bound_work_limit = 0;
      const absl::StatusOr<Plan> plan = Solve(problem, options);
      const int64_t step_ns = plan.ok() ? plan->predicted.step_ns : INT64_MAX;
      EXPECT_LE(step_ns, last_step_ns) << "seed " << seed << ", " << grains;
      met += plan.ok();
      apart += step_ns < last_step_ns;
      last_step_ns = step_ns;
    }
  }
  EXPECT_GT(met, 100);
  EXPECT_GT(apart, 20);
}

// The bound is less than a quarter percent below the peak: a loss of four bytes
// has to leave the device while the second node runs.
TEST(BudgetBisection, MeetsBudgetsAtTheBoundByACopyOfAFewBytes) {
  Problem problem;
  problem.name = "loss";
  problem.addresses = false;
  problem.values = {{.name = "loss", .bytes = 4},
                    {.file_id = 1, .name = "x", .bytes = 100'000},
                    {.file_id = 2, .name = "y", .bytes = 100'000}};
  problem.nodes.resize(2);
  problem.nodes[0] = {.name = "first", .time_ns = 1000, .recompute = false};
  problem.nodes[0].outputs = {ValueId{0}, ValueId{1}};
  problem.nodes[1] = {.file_id = 1, .name = "second", .time_ns = 1000};
  problem.nodes[1].inputs = {ValueId{1}};
  problem.nodes[1].outputs = {ValueId{2}};
  problem.outputs = {ValueId{0}};
  Machine machine;
  machine.name = "test";
  machine.device_bytes = machine.host_bytes = 1 << 20;
  machine.d2h.bytes_per_s = machine.h2d.bytes_per_s = 1e9;
  problem.machine = machine;
  SolveOptions options;
  options.work_limit = kWork;
  for (int64_t over_bytes : {0, 1, 3}) {
    options.budget_bytes = 200'000 + over_bytes;
    const absl::StatusOr<Plan> plan = Solve(problem, options);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->predicted.step_ns, 2008);
    EXPECT_EQ(plan->predicted.d2h_bytes, 4);
  }
  options.budget_bytes = 200'004;
  const absl::StatusOr<Plan> kept = Solve(problem, options);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->predicted.step_ns, 2000);
  options.budget_bytes = 199'999;
  const auto facts = InfeasibilityOf(Solve(problem, options).status());
  ASSERT_TRUE(facts.has_value());
  EXPECT_EQ(facts->smallest_met_bytes, 200'000);
}

}  // namespace
}  // namespace loadline::planner
