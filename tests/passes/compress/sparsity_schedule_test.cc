// Sparsity over the steps: monotone, and exact at both ends.
#include "passes/compress/sparsity_schedule.h"

#include <gtest/gtest.h>

namespace loadline::passes {
namespace {

PruneSpec Spec(SparsityCurve schedule) {
  return {.initial_sparsity = 0.1,
          .schedule = schedule,
          .start_step = 20,
          .end_step = 101,
          .update_frequency = 10};
}

TEST(SparsityAt, IsExactBeforeTheStartAndFromTheEndOn) {
  for (SparsityCurve curve : {SparsityCurve::kOneShot, SparsityCurve::kLinear,
                              SparsityCurve::kCubic}) {
    const PruneSpec spec = Spec(curve);
    EXPECT_EQ(SparsityAt(spec, 0.7, 19), 0);
    EXPECT_EQ(SparsityAt(spec, 0.7, 101), 0.7);
    EXPECT_EQ(SparsityAt(spec, 0.7, 5000), 0.7);
    EXPECT_NEAR(SparsityAt(spec, 0.7, 20),
                curve == SparsityCurve::kOneShot ? 0.7 : 0.1, 1e-12);
  }
}

TEST(SparsityAt, RisesOnlyAtUpdates) {
  for (SparsityCurve curve : {SparsityCurve::kLinear, SparsityCurve::kCubic}) {
    const PruneSpec spec = Spec(curve);
    double before = 0;
    for (int64_t step = 0; step < 130; ++step) {
      const double now = SparsityAt(spec, 0.7, step);
      if (IsMaskUpdate(spec, step)) {
        EXPECT_GT(now, before) << step;
      } else {
        EXPECT_EQ(now, before) << step;
      }
      before = now;
    }
  }
}

// The figures of Zhu and Gupta's formula by hand: s = sf + (si - sf)(1 - t)^3.
TEST(SparsityAt, FollowsTheCubicOfZhuAndGupta) {
  PruneSpec spec = {.start_step = 0, .end_step = 100, .update_frequency = 25};
  EXPECT_NEAR(SparsityAt(spec, 0.8, 25), 0.8 - 0.8 * 0.421875, 1e-12);
  EXPECT_NEAR(SparsityAt(spec, 0.8, 74), 0.8 - 0.8 * 0.125, 1e-12);
  spec.schedule = SparsityCurve::kLinear;
  EXPECT_NEAR(SparsityAt(spec, 0.8, 50), 0.4, 1e-12);
}

TEST(IsMaskUpdate, OfOneShotIsTheStartAndTheEnd) {
  const PruneSpec spec = Spec(SparsityCurve::kOneShot);
  for (int64_t step = 0; step < 130; ++step) {
    EXPECT_EQ(IsMaskUpdate(spec, step), step == 20 || step == 101) << step;
  }
}

}  // namespace
}  // namespace loadline::passes
