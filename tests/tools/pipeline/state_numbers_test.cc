// Optimizer states in 8 bits on the host.
#include "tools/pipeline/state_numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

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

TEST(StateNumbers, ComeBackWithinACode) {
  for (const bool has_sign : {false, true}) {
    const std::vector<float> numbers = Random(700, has_sign);
    const std::vector<std::byte> blocks = StateOfNumbers(numbers, has_sign);
    EXPECT_EQ(static_cast<int64_t>(blocks.size()),
              models::StateBlocksType(700).bytes());
    const std::vector<float> back = NumbersOfState(blocks, 700, has_sign);
    for (size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_NEAR(back[i], numbers[i], 0.15 * std::abs(numbers[i]) + 5e-3);
    }
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
    const auto sliced = SliceState(std::move(state), graph, kept);
    ASSERT_TRUE(sliced.ok()) << sliced.status();
    const std::vector<std::byte>& bytes = sliced->at("w.exp_avg_sq");
    ASSERT_EQ(static_cast<int64_t>(bytes.size()),
              left == 60 ? models::StateBlocksType(6000).bytes() : 2000 * 4);
    if (left != 60) continue;
    const std::vector<float> cut = NumbersOfState(bytes, 6000, false);
    for (size_t i = 0; i < cut.size(); ++i) {
      const float was = numbers[i / 60 * 100 + i % 60];
      EXPECT_NEAR(cut[i], was, 0.3 * was + 5e-3);
    }
  }
}

}  // namespace
}  // namespace loadline::tools
