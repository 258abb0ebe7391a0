// Plans that have only predictions and copies.
#include "planner/solve/objective.h"

#include "gtest/gtest.h"

namespace loadline::planner {
namespace {

// A plan with so many copies and nothing else.
Plan PlanWith(int64_t step_ns, int copies) {
  Plan plan;
  plan.predicted.step_ns = step_ns;
  for (int i = 0; i < copies; ++i) {
    plan.steps.push_back({.lane = Lane::kD2h, .kind = StepKind::kCopy});
  }
  return plan;
}

TEST(TakeFaster, CountsTheCallsOfCopies) {
  Problem problem;
  problem.machine.emplace();
  const Plan many = PlanWith(1000, 9);
  Plan few = PlanWith(1010, 2);
  problem.machine->switch_ns = 2;
  EXPECT_FALSE(TakeFaster(problem, many, &few));
  EXPECT_EQ(few.steps.size(), 2u);
  problem.machine->switch_ns = 1;
  EXPECT_TRUE(TakeFaster(problem, many, &few));
  EXPECT_EQ(few.steps.size(), 9u);
}

TEST(TakeFaster, KeepsTheBudgetAndItsBounds) {
  Plan smaller = PlanWith(900, 0);
  smaller.budget_bytes = 50;
  smaller.bounds = {.peak_bytes = 1, .step_ns = 2};
  Plan larger = PlanWith(1000, 3);
  larger.budget_bytes = 80;
  larger.bounds = {.peak_bytes = 3, .step_ns = 4};
  EXPECT_TRUE(TakeFaster(Problem(), smaller, &larger));
  EXPECT_TRUE(larger.steps.empty());
  EXPECT_EQ(larger.predicted.step_ns, 900);
  EXPECT_EQ(larger.budget_bytes, 80);
  EXPECT_EQ(larger.bounds.peak_bytes, 3);
  EXPECT_EQ(larger.bounds.step_ns, 4);
  EXPECT_FALSE(TakeFaster(Problem(), smaller, &larger));
}

}  // namespace
}  // namespace loadline::planner
