// Tables as in real models, and weights that must not be mistaken for them.
#include <cmath>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/onnx/tables.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::models::onnx_internal {
namespace {

Tensor Filled(const std::vector<int64_t>& dims,
              const std::vector<float>& values) {
  TensorType type;
  type.dims = dims;
  return MakeTensor(type, values.data());
}

// values[row * columns + column] = f(row * frequency of the column).
template <typename F>
std::vector<float> Turning(int rows, int columns, F f) {
  std::vector<float> values;
  for (int row = 0; row < rows; ++row) {
    for (int c = 0; c < columns; ++c) {
      const float frequency = 1.0f / std::pow(10000.0f, 1.0f * c / columns);
      values.push_back(f(static_cast<float>(row) * frequency));
    }
  }
  return values;
}

std::vector<float> Random(int count, float spread) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> values;
  for (int i = 0; i < count; ++i) values.push_back(normal(random));
  return values;
}

TEST(IsSineTable, KnowsRotaryAndAdditivePositions) {
  const auto sine = [](float x) { return std::sin(x); };
  const auto cosine = [](float x) { return std::cos(x); };
  for (int rows : {8, 100, 8192}) {
    EXPECT_TRUE(IsSineTable(Filled({rows, 32}, Turning(rows, 32, sine))));
    EXPECT_TRUE(IsSineTable(Filled({rows, 32}, Turning(rows, 32, cosine))));
  }
  EXPECT_TRUE(IsSineTable(Filled({1, 1, 50, 8}, Turning(50, 8, cosine))));
  EXPECT_TRUE(IsSineTable(Filled({50, 1, 8}, Turning(50, 8, sine))));
  // Sines in even columns, cosines in odd ones.
  std::vector<float> mixed = Turning(40, 16, sine);
  const std::vector<float> cosines = Turning(40, 16, cosine);
  for (size_t i = 1; i < mixed.size(); i += 2) mixed[i] = cosines[i];
  EXPECT_TRUE(IsSineTable(Filled({40, 16}, mixed)));
}

// Row y * width + x: sines and cosines of y, then those of x.
std::vector<float> Grid(int height, int width, int columns) {
  std::vector<float> values;
  for (int row = 0; row < height * width; ++row) {
    for (int c = 0; c < columns; ++c) {
      const int half = columns / 2, quarter = columns / 4;
      const int at = c < half ? row / width : row % width;
      const float angle = static_cast<float>(at) /
                          std::pow(10000.0f, 1.0f * (c % quarter) / quarter);
      values.push_back(c % half < quarter ? std::sin(angle) : std::cos(angle));
    }
  }
  return values;
}

TEST(IsSineTable, KnowsPositionsInAnImage) {
  for (const auto& [height, width] : {std::pair(8, 8), std::pair(4, 6)}) {
    std::vector<float> values = Grid(height, width, 16);
    const int64_t rows = height * width;
    EXPECT_TRUE(IsSineTable(Filled({1, rows, 16}, values)));
    values.insert(values.begin(), 16, 0.0f);  // of the class token
    EXPECT_TRUE(IsSineTable(Filled({1, rows + 1, 16}, values)));
    values[40] += 0.01f;
    EXPECT_FALSE(IsSineTable(Filled({1, rows + 1, 16}, values)));
  }
}

TEST(IsSineTable, LeavesWeightsAlone) {
  for (float spread : {1.0f, 0.02f, 1e-4f}) {
    EXPECT_FALSE(IsSineTable(Filled({32, 16}, Random(512, spread)))) << spread;
  }
  EXPECT_FALSE(IsSineTable(Filled({8, 8}, std::vector<float>(64, 0.0f))));
  EXPECT_FALSE(IsSineTable(Filled({8, 8}, std::vector<float>(64, 1.0f))));
  std::vector<float> identity(64, 0.0f);
  for (size_t i = 0; i < 64; i += 9) identity[i] = 1;
  EXPECT_FALSE(IsSineTable(Filled({8, 8}, identity)));
  EXPECT_FALSE(IsSineTable(Filled({64}, identity)));
  // A table that has been trained for a while.
  std::vector<float> moved =
      Turning(40, 16, [](float x) { return std::sin(x); });
  moved[123] += 0.01f;
  EXPECT_FALSE(IsSineTable(Filled({40, 16}, moved)));
}

TEST(IsFrequencies, KnowsTheSequenceAndNothingElse) {
  std::vector<float> frequencies;
  for (int i = 0; i < 32; ++i) {
    frequencies.push_back(1.0f / std::pow(10000.0f, 2.0f * i / 64));
  }
  EXPECT_TRUE(IsFrequencies(Filled({32}, frequencies)));
  EXPECT_TRUE(IsFrequencies(Filled({1, 32, 1}, frequencies)));
  frequencies[5] *= 1.01f;
  EXPECT_FALSE(IsFrequencies(Filled({32}, frequencies)));
  EXPECT_FALSE(IsFrequencies(Filled({8}, std::vector<float>(8, 1.0f))));
  EXPECT_FALSE(IsFrequencies(Filled({8}, Random(8, 1.0f))));
  EXPECT_FALSE(IsFrequencies(Filled({3}, {1, 0.5f, 0.25f})));
}

TEST(IsRegular, TellsTablesFromWeights) {
  EXPECT_TRUE(IsRegular(Filled({4}, {1, 2, 1, 7})));
  EXPECT_TRUE(IsRegular(Filled({3, 3}, {.5, .1, .2, .1, .3, .7, .2, .7, .9})));
  EXPECT_TRUE(IsRegular(Filled({2, 3}, {0, .1, 0, 0, 0, .7})));
  EXPECT_TRUE(IsRegular(Filled({7}, {.1, .2, .3, .35, .4, .5, .7})));
  EXPECT_TRUE(IsRegular(
      Filled({3, 4}, {.9, .8, .7, .6, .81, .64, .49, .36, .7, .5, .3, .2})));
  EXPECT_TRUE(IsRegular(Filled({2, 1, 3}, {.2, .6, .3, .2, .6, .3})));
  EXPECT_TRUE(
      IsRegular(Filled({4}, {3.1415927, 6.2831855, 12.566371, 25.132742})));
  EXPECT_TRUE(IsRegular(Filled({3}, {-.1, .2, .5})));
  EXPECT_TRUE(IsRegular(Filled({1, 4}, {.125, .375, .375, .125})));
  EXPECT_FALSE(IsRegular(Filled({2}, {.125, .375})));
  EXPECT_FALSE(IsRegular(Filled({3}, {.1, .2, .35})));  // by chance
  EXPECT_FALSE(IsRegular(Filled({3}, {1, 1, 1})));
  EXPECT_FALSE(IsRegular(Filled({1}, {2})));
  EXPECT_FALSE(IsRegular(Filled({2, 2}, {1, 0, 0, 1})));
  for (int side : {2, 3, 8, 50}) {
    EXPECT_FALSE(IsRegular(Filled({side, side}, Random(side * side, 0.1f))));
    EXPECT_FALSE(IsRegular(Filled({side, 1, 2}, Random(side * 2, 0.1f))));
  }
}

}  // namespace
}  // namespace loadline::models::onnx_internal
