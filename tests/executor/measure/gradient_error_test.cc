// The profile of a step whose gradient is known: y = x w, loss = mean (y -
// t)^2.
#include "executor/measure/gradient_error.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "executor/cpu/device.h"
#include "gtest/gtest.h"
#include "models/graph.h"
#include "models/ops/codec.h"
#include "passes/compress/add_fake_quantize.h"
#include "passes/training_pipeline.h"

namespace loadline::executor {
namespace {

using models::DType;
using models::Graph;
using models::ValueId;

// x -> Tanh -> h; h w -> output. The gradient of w is h' dy. `quantizer`: fake
// quantization of all three.
Graph Step(std::optional<passes::Quantizer> quantizer = std::nullopt) {
  Graph graph;
  const ValueId x = graph.AddInput("x", {DType::kF32, {64, 32}});
  std::vector<float> w(32 * 8, 0.1f);
  const ValueId weight = graph.AddParameter(
      "w", models::MakeTensor({DType::kF32, {32, 8}}, w.data()));
  const auto h = graph.AddNode("Tanh", "h", {x});
  const auto y = graph.AddNode("MatMul", "y", {(*h)[0], weight});
  graph.outputs = {(*y)[0]};
  if (quantizer.has_value()) {
    const std::vector<passes::QuantizeRequest> requests = {
        {.nodes = {models::NodeId{1}}, .spec = {.quantizer = *quantizer}}};
    const auto added = passes::AddFakeQuantize(graph, requests);
    EXPECT_TRUE(added.ok()) << added.status();
  }
  passes::TrainingOptions options;
  options.loss.kind = passes::LossKind::kMse;
  options.loss.target = {DType::kF32, {64, 8}};
  auto step = passes::BuildTrainingStep(std::move(graph), options, {});
  EXPECT_TRUE(step.ok()) << step.status();
  return *std::move(step);
}

std::vector<std::vector<float>> Inputs() {
  std::vector<std::vector<float>> inputs(2);
  for (int i = 0; i < 64 * 32; ++i) inputs[0].push_back(std::sin(0.37f * i));
  for (int i = 0; i < 64 * 8; ++i) inputs[1].push_back(std::cos(0.11f * i));
  return inputs;
}

absl::StatusOr<std::vector<double>> Profile(const Graph& graph,
                                            const std::string& codec,
                                            uint64_t seed) {
  const auto inputs = Inputs();
  const std::byte* pointers[] = {
      reinterpret_cast<const std::byte*>(inputs[0].data()),
      reinterpret_cast<const std::byte*>(inputs[1].data())};
  CpuDevice host;
  return ProfileGradientErrors(graph, pointers, LossyCandidates(graph, 0), host,
                               {.codec = codec, .seed = seed});
}

TEST(LossyCandidates, AreFloatsMadeBeforeTheLossAndReadAfterIt) {
  const Graph graph = Step();
  const auto candidates = LossyCandidates(graph, 4096);
  ASSERT_EQ(candidates.size(), 1u);
  EXPECT_EQ(graph.value(candidates[0]).name, "h");
  EXPECT_TRUE(LossyCandidates(graph, 64 * 32 * 4 + 1).empty());
}

// The forward pass reads ranges that it updates itself.
TEST(ProfileGradientErrors, RunsQuantizers) {
  const auto errors = Profile(Step(passes::Quantizer::kUniform), "group8", 1);
  ASSERT_TRUE(errors.ok()) << errors.status();
  EXPECT_GT(*std::max_element(errors->begin(), errors->end()), 0);
  // Trained scales begin with a phase: before, everything is rounded to zero.
  EXPECT_EQ(Profile(Step(passes::Quantizer::kLsq), "group8", 1).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

// With the gradient of w, h' dy, an error of h alone is that of the product:
// sqrt(1/6) of a step in every element on average.
TEST(ProfileGradientErrors, IsTheErrorOfTheProductThatReadsTheValue) {
  const Graph graph = Step();
  const auto h = models::Index(*graph.Find("h"));
  double mean = 0;
  constexpr int kSeeds = 20;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const auto errors = Profile(graph, "group8", seed);
    ASSERT_TRUE(errors.ok()) << errors.status();
    mean += (*errors)[h] / kSeeds;
    for (size_t v = 0; v < errors->size(); ++v) {
      if (graph.values[v].name == "x") {
        EXPECT_EQ((*errors)[v], -1);
      }
    }
  }
  // |dy| and |h| of all elements, and the norm of their product.
  const auto inputs = Inputs();
  double product = 0, dy_squares = 0;
  std::vector<double> gradient(32 * 8, 0.0);
  for (int r = 0; r < 64; ++r) {
    double y = 0;
    for (int k = 0; k < 32; ++k) y += 0.1f * std::tanh(inputs[0][r * 32 + k]);
    for (int c = 0; c < 8; ++c) {
      const double dy = y - inputs[1][r * 8 + c];
      dy_squares += dy * dy;
      for (int k = 0; k < 32; ++k) {
        gradient[k * 8 + c] += dy * std::tanh(inputs[0][r * 32 + k]);
      }
    }
  }
  for (double g : gradient) product += g * g;
  const double step = 2 * std::tanh(1.0) / 255;
  const double expected =
      std::sqrt(32 * dy_squares * step * step / 6 / product);
  EXPECT_NEAR(mean, expected, 0.15 * expected);
}

TEST(ProfileGradientErrors, GrowsAsTheStepDoes) {
  const Graph graph = Step();
  const auto h = models::Index(*graph.Find("h"));
  const auto error = [&](const char* codec) {
    double mean = 0;
    for (int seed = 1; seed <= 10; ++seed) {
      mean += (*Profile(graph, codec, seed))[h] / 10;
    }
    return mean;
  };
  const double eight = error("group8");
  for (int bits : {4, 2, 1}) {
    const double scaled = eight * 255 / ((1 << bits) - 1);
    EXPECT_NEAR(error(("group" + std::to_string(bits)).c_str()), scaled,
                0.35 * scaled);
  }
}

// y = (tanh(x) w) scale scale2 + bias. While both scales are zero, so are the
// gradients of w and of them, and what h loses seems to change nothing.
Graph ScaledStep(float scale) {
  Graph graph;
  const ValueId x = graph.AddInput("x", {DType::kF32, {64, 32}});
  const std::vector<float> w(32 * 8, 0.1f), scales(8, scale);
  const ValueId weight = graph.AddParameter(
      "w", models::MakeTensor({DType::kF32, {32, 8}}, w.data()));
  const ValueId factor = graph.AddParameter(
      "scale", models::MakeTensor({DType::kF32, {8}}, scales.data()));
  const ValueId factor2 = graph.AddParameter(
      "scale2", models::MakeTensor({DType::kF32, {8}}, scales.data()));
  const std::vector<float> zeros(8, 0.0f);
  const ValueId bias = graph.AddParameter(
      "bias", models::MakeTensor({DType::kF32, {8}}, zeros.data()));
  const auto h = graph.AddNode("Tanh", "h", {x});
  const auto y = graph.AddNode("MatMul", "y", {(*h)[0], weight});
  const auto scaled = graph.AddNode("Mul", "scaled", {(*y)[0], factor});
  const auto again = graph.AddNode("Mul", "again", {(*scaled)[0], factor2});
  graph.outputs = {(*graph.AddNode("Add", "sum", {(*again)[0], bias}))[0]};
  passes::TrainingOptions options;
  options.loss.kind = passes::LossKind::kMse;
  options.loss.target = {DType::kF32, {64, 8}};
  auto step = passes::BuildTrainingStep(std::move(graph), options, {});
  EXPECT_TRUE(step.ok()) << step.status();
  return *std::move(step);
}

TEST(ProfileGradientErrors, PutsNumbersInFactorsThatStartAtZero) {
  const Graph zero = ScaledStep(0), one = ScaledStep(1);
  const auto of_zero = Profile(zero, "group8", 1);
  const auto of_one = Profile(one, "group8", 1);
  ASSERT_TRUE(of_zero.ok()) << of_zero.status();
  ASSERT_TRUE(of_one.ok()) << of_one.status();
  const auto h = models::Index(*one.Find("h"));
  EXPECT_GT((*of_one)[h], 0);
  EXPECT_EQ((*of_zero)[h], (*of_one)[h]);
}

TEST(ProfileGradientErrors, NeedsContentsAndUpdates) {
  Graph graph = Step();
  for (models::Value& value : graph.values) {
    if (value.kind == models::ValueKind::kParameter)
      value.initial->data.reset();
  }
  EXPECT_EQ(Profile(graph, "group8", 1).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace loadline::executor
