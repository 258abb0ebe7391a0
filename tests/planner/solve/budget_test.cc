// Shares, a GPU's bytes, and which solver a budget asks for.
#include "planner/solve/budget.h"

#include <cstdint>

#include "gtest/gtest.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

Plan Keeping(int64_t peak_bytes) {
  Plan plan;
  plan.predicted.peak_bytes = peak_bytes;
  plan.arena_bytes = peak_bytes;
  return plan;
}

TEST(BytesOf, RoundsAShareUpExactly) {
  const Problem problem;
  const Plan keep = Keeping(1001), huge = Keeping(INT64_MAX);
  EXPECT_EQ(*BytesOf(Budget::Share(600'000'000), problem, keep), 601);
  EXPECT_EQ(*BytesOf(Budget::Share(kWholePpb), problem, keep), 1001);
  EXPECT_EQ(*BytesOf(Budget::Share(1), problem, keep), 1);
  // In floating point 0.55 * 100 is more than 55.
  EXPECT_EQ(*BytesOf(Budget::Share(550'000'000), problem, Keeping(100)), 55);
  EXPECT_EQ(*BytesOf(Budget::Share(kWholePpb), problem, huge), INT64_MAX);
  EXPECT_FALSE(BytesOf(Budget::Share(2 * kWholePpb), problem, huge).ok());
}

// Two buffers of 100 bytes: 200 live bytes, 356 with gaps.
TEST(BytesOf, AWholeShareFitsWhereAlignmentLeavesGaps) {
  Problem problem;
  problem.values = {{.file_id = 0, .bytes = 100}, {.file_id = 1, .bytes = 100}};
  problem.nodes = {{0, "n", 10, {ValueId{0}}, {ValueId{1}}, 0, true, {}, {}}};
  problem.outputs = {ValueId{1}};
  const Plan keep = *KeepEverything(problem);
  ASSERT_EQ(keep.predicted.peak_bytes, 200);
  ASSERT_EQ(keep.arena_bytes, 356);
  EXPECT_EQ(*BytesOf(Budget::Share(kWholePpb), problem, keep), 356);
  EXPECT_EQ(*BytesOf(Budget::Share(kWholePpb * 2), problem, keep), 400);
  EXPECT_EQ(*BytesOf(Budget::Share(kWholePpb - 1), problem, keep), 200);
  EXPECT_EQ(SolveWithin(problem, Budget::Share(kWholePpb), {})->arena_bytes,
            356);
  // Aligned sizes leave no gaps.
  for (Value& value : problem.values) value.bytes = 256;
  EXPECT_EQ(
      *BytesOf(Budget::Share(kWholePpb), problem, *KeepEverything(problem)),
      512);
}

TEST(BytesOf, TakesOffWhatAGpuReservesWhereTheBudgetCountsIt) {
  Problem problem;
  Budget budget = Budget::Bytes(1000);
  budget.counts_reserved = true;
  const Plan keep;
  EXPECT_EQ(*BytesOf(budget, problem, keep), 1000);  // no machine
  problem.machine.emplace();
  problem.machine->reserved_bytes = 999;
  EXPECT_EQ(*BytesOf(budget, problem, keep), 1);
  EXPECT_EQ(*BytesOf(Budget::Bytes(1000), problem, keep), 1000);
  problem.machine->reserved_bytes = 1000;
  EXPECT_EQ(BytesOf(budget, problem, keep).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(BytesOf, RefusesWhatHasNoBytes) {
  for (const Budget& budget :
       {Budget::Smallest(), Budget::Bytes(-1), Budget::Share(-1)}) {
    EXPECT_EQ(BytesOf(budget, Problem(), Plan()).status().code(),
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
