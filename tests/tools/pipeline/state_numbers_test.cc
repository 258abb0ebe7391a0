// Optimizer states in 8 bits on the host.
#include "tools/pipeline/state_numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "executor/reference/state_blocks.h"
#include "models/ops/state_blocks.h"
#include "tests/passes/graphs.h"
#include "tools/pipeline/carry_state.h"

namespace loadline::tools {
namespace {

std::vector<float> Random(size_t count, bool has_sign) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> numbers;
  for (size_t i = 0; i < count; ++i) {
    const float x = normal(random);
    numbers.push_back(has_sign ? x : x * x);
  }
  return numbers;
}

// What 8 bits give back, by the definition of the code.
std::vector<float> Coded(const std::vector<float>& numbers, bool has_sign) {
  const std::vector<double> codes = reference::StateNumbers(has_sign);
  std::vector<float> coded;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const size_t first = i / 256 * 256;
    double scale = 0;
    for (size_t j = first; j < std::min(first + 256, numbers.size()); ++j) {
      scale = std::max(scale, std::abs(double{numbers[j]}));
    }
    const int code =
        scale == 0 ? 0 : reference::NearestStateCode(codes, numbers[i] / scale);
    coded.push_back(
        static_cast<float>(scale * codes[static_cast<size_t>(code)]));
  }
  return coded;
}

// As near to `numbers` as 8 bits can be, but for rounding between two codes.
void ExpectNearest(const std::vector<float>& actual,
                   const std::vector<float>& numbers, bool has_sign) {
  ASSERT_EQ(actual.size(), numbers.size());
  const std::vector<float> coded = Coded(numbers, has_sign);
  for (size_t i = 0; i < actual.size(); ++i) {
    const float x = numbers[i];
    EXPECT_LE(std::abs(actual[i] - x),
              std::abs(coded[i] - x) + 1e-6 * std::abs(x))
        << i;
  }
}

TEST(StateNumbers, ComeBackAsTheNearestCodes) {
  for (const bool has_sign : {false, true}) {
    const std::vector<float> numbers = Random(700, has_sign);
    const std::vector<std::byte> blocks = StateOfNumbers(numbers, has_sign);
    EXPECT_EQ(static_cast<int64_t>(blocks.size()),
              models::StateBlocksType(700).bytes());
    ExpectNearest(NumbersOfState(blocks, 700, has_sign), numbers, has_sign);
  }
}

TEST(StateNumbers, ClearLeavesOtherCodesAlone) {
  std::vector<std::byte> blocks = StateOfNumbers(Random(700, true), true);
  const std::vector<float> before = NumbersOfState(blocks, 700, true);
  ClearNumbers(
      700, [](int64_t e) { return e % 3 == 0; }, absl::MakeSpan(blocks));
  const std::vector<float> after = NumbersOfState(blocks, 700, true);
  for (size_t i = 0; i < after.size(); ++i) {
    EXPECT_EQ(after[i], i % 3 == 0 ? 0 : before[i]);
  }
}

TEST(StateNumbers, AreCutWithTheirParameter) {
  passes::Builder b;
  b.Parameter("w", {100, 100});
  const models::Graph graph = [&] {
    b.State("w.exp_avg_sq", {100, 100});
    models::Graph step = b.graph;
    step.value(*step.Find("w.exp_avg_sq")).type =
        models::StateBlocksType(10000);
    return step;
  }();
  const std::vector<float> numbers = Random(10000, false);
  for (const int64_t left : {60, 20}) {  // in blocks, and in f32
    KeptAxes kept = {{"w", {{.axis = 1, .indices = {}}}}};
    for (int64_t i = 0; i < left; ++i) kept["w"][0].indices.push_back(i);
    RunState state;
    state["w.exp_avg_sq"] = StateOfNumbers(numbers, false);
    const std::vector<float> coded =
        NumbersOfState(state["w.exp_avg_sq"], 10000, false);
    const auto sliced = SliceState(std::move(state), graph, kept);
    ASSERT_TRUE(sliced.ok()) << sliced.status();
    const std::vector<std::byte>& bytes = sliced->at("w.exp_avg_sq");
    ASSERT_EQ(static_cast<int64_t>(bytes.size()),
              left == 60 ? models::StateBlocksType(6000).bytes() : 2000 * 4);
    std::vector<float> cut;
    for (size_t row = 0; row < 100; ++row) {
      const auto first = coded.begin() + static_cast<int64_t>(row) * 100;
      cut.insert(cut.end(), first, first + left);
    }
    if (left == 60) {
      ExpectNearest(NumbersOfState(bytes, 6000, false), cut, false);
      continue;
    }
    std::vector<float> floats(cut.size());
    std::memcpy(floats.data(), bytes.data(), bytes.size());
    EXPECT_EQ(floats, cut);
  }
}

}  // namespace
}  // namespace loadline::tools
