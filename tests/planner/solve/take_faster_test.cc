// Plans that have only predictions and copies.
#include "planner/solve/take_faster.h"

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

TEST(TakeFaster, KeepsTheBudgetAndItsBounds) {
  Plan smaller = PlanWith(900, 0);
  smaller.budget_bytes = 50;
  smaller.bounds = {.peak_bytes = 1, .step_ns = 2};
  Plan larger = PlanWith(1000, 3);
  larger.budget_bytes = 80;
  larger.bounds = {.peak_bytes = 3, .step_ns = 4};
  EXPECT_TRUE(TakeFaster(smaller, &larger));
  EXPECT_TRUE(larger.steps.empty());
  EXPECT_EQ(larger.predicted.step_ns, 900);
  EXPECT_EQ(larger.budget_bytes, 80);
  EXPECT_EQ(larger.bounds.peak_bytes, 3);
  EXPECT_EQ(larger.bounds.step_ns, 4);
  EXPECT_FALSE(TakeFaster(smaller, &larger));
}

}  // namespace
}  // namespace loadline::planner
