// The grid of budgets: round points first, and what each may cost.
#include "planner/solve/budget_points.h"

#include <vector>

#include "gtest/gtest.h"

namespace loadline::planner {
namespace {

constexpr SearchTuning::Bisection kTuning;

TEST(BudgetPoints, SpreadEvenlyToThePeak) {
  const BudgetPoints points(1001, kTuning);
  EXPECT_EQ(points.BytesAt(0), 0);
  EXPECT_EQ(points.BytesAt(100), 250);  // a quarter, rounded down
  EXPECT_EQ(points.BytesAt(points.count()), 1001);
  const BudgetPoints large(INT64_MAX / 2, kTuning);
  EXPECT_EQ(large.BytesAt(large.count()), INT64_MAX / 2);
}

// Tens of percent first, then fives, ones, halves and quarters.
TEST(BudgetPoints, TakeTheRoundestPointNearestToTheMiddle) {
  const BudgetPoints points(1000, kTuning);
  EXPECT_EQ(points.Between(0, 400), 200);
  EXPECT_EQ(points.Between(200, 400), 320);
  EXPECT_EQ(points.Between(200, 240), 220);
  EXPECT_EQ(points.Between(200, 220), 212);
  EXPECT_EQ(points.Between(200, 204), 202);
  EXPECT_EQ(points.Between(200, 202), 201);
  EXPECT_EQ(points.Between(200, 201), 0);
}

TEST(BudgetPoints, EveryBisectionEndsBetweenNeighbours) {
  const BudgetPoints points(1000, kTuning);
  for (int target = 1; target < points.count(); ++target) {
    int lower = 0, upper = points.count(), searches = 0;
    while (const int point = points.Between(lower, upper)) {
      (point <= target ? lower : upper) = point;
      ++searches;
    }
    EXPECT_EQ(lower, target);
    EXPECT_EQ(upper, target + 1);
    EXPECT_LE(searches, 12);
  }
}

TEST(BudgetPoints, GiveRoundAndTightPointsMoreWork) {
  const BudgetPoints points(1000, kTuning);
  EXPECT_EQ(points.WorkShare(200), 0.5);
  EXPECT_EQ(points.WorkShare(160), 0.5 * 1.4);
  EXPECT_EQ(points.WorkShare(80), 0.5 * 1.4);
  EXPECT_EQ(points.WorkShare(40), 0.5);
  EXPECT_EQ(points.WorkShare(220), 0.12);
  EXPECT_EQ(points.WorkShare(204), 0.06);
  EXPECT_EQ(points.WorkShare(201), 0.03);
}

TEST(BudgetPoints, DistinguishBudgetsByGrains) {
  EXPECT_EQ(BudgetPoints(64'000, kTuning).GrainBytes(), 10);
  EXPECT_EQ(BudgetPoints(100, kTuning).GrainBytes(), 1);
}

}  // namespace
}  // namespace loadline::planner
