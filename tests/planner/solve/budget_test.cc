// Shares, a GPU's bytes, and which solver a budget asks for.
#include "planner/solve/budget.h"

#include <cstdint>

#include "gtest/gtest.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

TEST(BytesOf, RoundsAShareUpExactly) {
  const Problem problem;
  EXPECT_EQ(*BytesOf(Budget::Share(600'000'000), problem, 1001), 601);
  EXPECT_EQ(*BytesOf(Budget::Share(kWholePpb), problem, 1001), 1001);
  EXPECT_EQ(*BytesOf(Budget::Share(1), problem, 1001), 1);
  // In floating point 0.55 * 100 is more than 55.
  EXPECT_EQ(*BytesOf(Budget::Share(550'000'000), problem, 100), 55);
  EXPECT_EQ(*BytesOf(Budget::Share(kWholePpb), problem, INT64_MAX), INT64_MAX);
  EXPECT_FALSE(BytesOf(Budget::Share(2 * kWholePpb), problem, INT64_MAX).ok());
}

TEST(BytesOf, TakesOffWhatAGpuReservesWhereTheBudgetCountsIt) {
  Problem problem;
  Budget budget = Budget::Bytes(1000);
  budget.counts_reserved = true;
  EXPECT_EQ(*BytesOf(budget, problem, 0), 1000);  // no machine
  problem.machine.emplace();
  problem.machine->reserved_bytes = 999;
  EXPECT_EQ(*BytesOf(budget, problem, 0), 1);
  EXPECT_EQ(*BytesOf(Budget::Bytes(1000), problem, 0), 1000);
  problem.machine->reserved_bytes = 1000;
  EXPECT_EQ(BytesOf(budget, problem, 0).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(BytesOf, RefusesWhatHasNoBytes) {
  for (const Budget& budget :
       {Budget::Smallest(), Budget::Bytes(-1), Budget::Share(-1)}) {
    EXPECT_EQ(BytesOf(budget, Problem(), 100).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(SolveWithin, IsSolveOrSolveSmallest) {
  const Problem problem = RandomProblem(3, 20, true, true);
  SolveOptions options;
  options.work_limit = 4'000;
  options.bound_work_limit = 0;
  const int64_t peak_bytes = KeepEverything(problem)->predicted.peak_bytes;
  const auto json = [&](const absl::StatusOr<Plan>& plan) {
    return plan.ok() ? PlanToJson(*plan, problem) : plan.status().ToString();
  };
  EXPECT_EQ(json(SolveWithin(problem, Budget::Smallest(), options)),
            json(SolveSmallest(problem, options)));
  options.budget_bytes = (peak_bytes * 3 + 3) / 4;
  EXPECT_EQ(
      json(SolveWithin(problem, Budget::Share(kWholePpb / 4 * 3), {})),
      json(SolveWithin(problem, Budget::Bytes(options.budget_bytes), {})));
  EXPECT_EQ(
      json(SolveWithin(problem, Budget::Bytes(options.budget_bytes), options)),
      json(Solve(problem, options)));
}

}  // namespace
}  // namespace loadline::planner
