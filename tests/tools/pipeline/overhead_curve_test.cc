#include "tools/pipeline/overhead_curve.h"

#include <gtest/gtest.h>

namespace loadline::tools {
namespace {

constexpr double kWithout = 1.0 / 3;

TEST(GrantedShare, IsOfTheBytesBetweenFloorAndPeak) {
  EXPECT_DOUBLE_EQ(GrantedShare(100, 300, 100), 0);
  EXPECT_DOUBLE_EQ(GrantedShare(100, 300, 150), 0.25);
  EXPECT_DOUBLE_EQ(GrantedShare(100, 300, 300), 1);
  EXPECT_LT(GrantedShare(100, 300, 99), 0);
}

TEST(GrantedShare, IsAllOrNothingWhereNothingCanBeSaved) {
  EXPECT_EQ(GrantedShare(100, 100, 100), 1);
  EXPECT_LT(GrantedShare(100, 100, 99), 0);
}

TEST(OverheadCurve, MeetsItsPlansAndIsBetweenThemElsewhere) {
  OverheadCurve curve;
  curve.Add(0.5, 0.1);
  curve.Add(0.125, 0.3);
  EXPECT_DOUBLE_EQ(curve.At(0.5, kWithout), 0.1);
  EXPECT_DOUBLE_EQ(curve.At(0.125, kWithout), 0.3);
  EXPECT_DOUBLE_EQ(curve.At(0.25, kWithout), 0.2);
}

TEST(OverheadCurve, IsZeroFromTheWholeOn) {
  OverheadCurve curve;
  EXPECT_EQ(curve.At(1, kWithout), 0);
  curve.Add(0.5, 0.1);
  EXPECT_EQ(curve.At(1, kWithout), 0);
  EXPECT_EQ(curve.At(7, kWithout), 0);
}

TEST(OverheadCurve, NeverFallsAsTheShareFalls) {
  OverheadCurve curve;
  curve.Add(0.5, 0.1);
  curve.Add(0.25, 0.4);
  curve.Add(0.125, 0.3);  // a plan for less memory fits in more
  curve.Add(1, 0.02);
  double larger = 0;
  for (double share = 1.2; share > -0.2; share -= 0.01) {
    const double overhead = curve.At(share, kWithout);
    EXPECT_GE(overhead, larger) << share;
    larger = overhead;
  }
  EXPECT_GT(larger, 1) << "at the floor";
}

// A longer search at a small share shows what a short one at a larger share
// missed, whichever came first.
TEST(OverheadCurve, IsLoweredByAPlanForLessMemory) {
  for (const bool small_first : {false, true}) {
    OverheadCurve curve;
    if (small_first) curve.Add(0.25, 0.1);
    curve.Add(0.5, 0.08);
    if (!small_first) curve.Add(0.25, 0.1);
    EXPECT_DOUBLE_EQ(curve.At(0.5, kWithout), 0.05);
    EXPECT_DOUBLE_EQ(curve.At(0.25, kWithout), 0.1);
  }
}

TEST(OverheadCurve, IsNotLoweredByAPlanThatKeepsEverything) {
  OverheadCurve curve;
  curve.Add(0.5, 0.1);
  curve.Add(1, 0);
  curve.Add(2, 0);
  EXPECT_DOUBLE_EQ(curve.At(0.5, kWithout), 0.1);
}

TEST(OverheadCurve, AssumesAnOverheadWhereNoPlanIsKnown) {
  const OverheadCurve curve;
  EXPECT_DOUBLE_EQ(curve.At(0.1, kWithout), kWithout);
  EXPECT_GT(curve.At(0.05, kWithout), kWithout);
  EXPECT_LT(curve.At(0.5, kWithout), kWithout);
}

}  // namespace
}  // namespace loadline::tools
