// Properties that hold for every mode of resizing an axis;
// tests/conformance/imported_operators_test.cc checks single values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "models/onnx/resample.h"

namespace loadline::models::onnx_internal {
namespace {

using ::testing::ElementsAre;

TEST(ResampleTaps, WeightsSumToOneInsideTheAxis) {
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const char* coordinates :
         {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel",
          "half_pixel_symmetric"}) {
      for (const char* nearest :
           {"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"}) {
        for (bool exclude : {false, true}) {
          const Resampling r{mode, coordinates, nearest, -0.75, exclude};
          ASSERT_TRUE(CheckResampling(r).ok());
          for (int64_t in = 1; in < 9; ++in) {
            for (int64_t out = 1; out < 20; ++out) {
              const auto taps = ResampleTaps(
                  r, in, out,
                  static_cast<double>(out) / static_cast<double>(in));
              ASSERT_EQ(taps.size(), static_cast<size_t>(out));
              for (const auto& row : taps) {
                double sum = 0;
                for (const Tap& tap : row) {
                  ASSERT_GE(tap.from, 0);
                  ASSERT_LT(tap.from, in);
                  sum += tap.weight;
                }
                ASSERT_NEAR(sum, 1, 1e-12);
              }
            }
          }
        }
      }
    }
  }
}

TEST(ResampleTaps, ReproduceALineAwayFromTheEnds) {
  for (const char* mode : {"linear", "cubic"}) {
    // Of the cubic modes, Keys' own (-0.5) does.
    const Resampling r{.mode = mode, .cubic_coeff_a = -0.5};
    const auto taps = ResampleTaps(r, 12, 30, 2.5);
    for (size_t i = 6; i < 24; ++i) {
      double x = 0;
      for (const Tap& tap : taps[i]) {
        x += tap.weight * static_cast<double>(tap.from);
      }
      EXPECT_NEAR(x, (static_cast<double>(i) + 0.5) / 2.5 - 0.5, 1e-12);
    }
  }
}

// Half the size: the triangle is two elements wide on each side. By hand.
TEST(ResampleTaps, AntialiasStretchesTheFilter) {
  const auto weights = [](bool exclude) {
    const Resampling r{
        .mode = "linear", .exclude_outside = exclude, .antialias = true};
    std::vector<double> sums(4);
    const auto rows = ResampleTaps(r, 4, 2, 0.5);
    for (const Tap& tap : rows[0]) {
      sums[static_cast<size_t>(tap.from)] += tap.weight;
    }
    return sums;
  };
  EXPECT_THAT(weights(false), ElementsAre(0.5, 0.375, 0.125, 0));
  EXPECT_THAT(weights(true),
              ElementsAre(0.75 / 1.75, 0.75 / 1.75, 0.25 / 1.75, 0));
  const Resampling larger{.mode = "cubic", .antialias = true};
  EXPECT_EQ(ResampleTaps(larger, 4, 8, 2)[3].size(), 4u);
}

TEST(RepeatsOf, KnowsAllIntegerRatiosOfNearest) {
  const Resampling floor{.coordinates = "asymmetric", .nearest_mode = "floor"};
  for (int64_t ratio = 1; ratio < 6; ++ratio) {
    const auto taps =
        ResampleTaps(floor, 7, 7 * ratio, static_cast<double>(ratio));
    EXPECT_EQ(RepeatsOf(taps, 7), ratio);
  }
  EXPECT_EQ(RepeatsOf(ResampleTaps({}, 7, 14, 2), 7), 2);
  EXPECT_EQ(RepeatsOf(ResampleTaps({}, 7, 21, 3), 7), 3);
  EXPECT_EQ(RepeatsOf(ResampleTaps({}, 4, 6, 1.5), 4), std::nullopt);
  EXPECT_EQ(RepeatsOf(ResampleTaps({.mode = "linear"}, 4, 8, 2), 4),
            std::nullopt);
}

TEST(CheckResampling, NamesWhatIsUnknown) {
  EXPECT_EQ(CheckResampling({.coordinates = "tf_crop_and_resize"}).message(),
            "with tf_crop_and_resize");
}

}  // namespace
}  // namespace loadline::models::onnx_internal
