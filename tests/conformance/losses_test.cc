// Losses that are written out as nodes, and their gradients, against numbers
// that PyTorch 2.15 printed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "passes/add_gradients.h"
#include "passes/add_loss.h"
#include "tests/conformance/interpreter.h"

namespace loadline::executor {
namespace {

using models::DType;
using passes::LossKind;
using passes::LossOptions;
using ::testing::FloatNear;
using ::testing::Pointwise;

constexpr float kPrediction[] = {0.5f, -1, 2, 3, 0, -4};
constexpr float kTarget[] = {0, 0.25f, 1, 1, 0, 1};

// Loss and gradient of kPrediction, [2,3]; `classes` only for cross-entropy.
std::vector<float> LossAndGradient(LossOptions options,
                                   const std::vector<int64_t>& classes = {}) {
  models::Graph graph;
  const models::ValueId p = graph.AddParameter(
      "p", models::MakeTensor({DType::kF32, {2, 3}}, kPrediction));
  graph.outputs = {p};
  options.target = classes.empty() ? models::TensorType{DType::kF32, {2, 3}}
                                   : models::TensorType{DType::kI64, {2}};
  const absl::Status added = passes::AddLoss(graph, options);
  EXPECT_TRUE(added.ok()) << added;
  const models::ValueId loss = graph.outputs[0];
  const auto gradients = passes::AddGradients(graph, loss);
  EXPECT_TRUE(gradients.ok()) << gradients.status();
  auto run = Interpreter::Make(graph);
  EXPECT_TRUE(run.ok()) << run.status();
  const models::ValueId target = graph.inputs[0];
  if (classes.empty()) {
    std::copy(std::begin(kTarget), std::end(kTarget),
              (*run)->Contents<float>(target).begin());
  } else {
    std::copy(classes.begin(), classes.end(),
              (*run)->Contents<int64_t>(target).begin());
  }
  EXPECT_TRUE((*run)->Run({}).ok());
  std::vector<float> result = {(*run)->Contents<float>(loss)[0]};
  const absl::Span<float> slopes = (*run)->Contents<float>(gradients->at(p));
  result.insert(result.end(), slopes.begin(), slopes.end());
  return result;
}

auto Are(const std::vector<float>& expected) {
  return Pointwise(FloatNear(3e-7f), expected);
}

TEST(Losses, HavePyTorchsNumbers) {
  EXPECT_THAT(LossAndGradient({.kind = LossKind::kL1}),
              Are({1.625f, 0.166666672f, -0.166666672f, 0.166666672f,
                   0.166666672f, 0, -0.166666672f}));
  EXPECT_THAT(LossAndGradient({.kind = LossKind::kHuber, .delta = 1.25}),
              Are({1.43229163f, 0.0833333358f, -0.208333343f, 0.166666672f,
                   0.208333343f, 0, -0.208333343f}));
  EXPECT_THAT(LossAndGradient({.kind = LossKind::kBce}),
              Are({1.07069194f, 0.103743225f, 0.0031569053f, -0.0198671613f,
                   -0.00790431071f, 0.0833333358f, -0.16366896f}));
}

TEST(Losses, SmoothLabelsAsPyTorchDoes) {
  const LossOptions options = {.label_smoothing = 0.1};
  EXPECT_THAT(LossAndGradient(options, {2, 0}),
              Are({0.387050092f, 0.0709785298f, 0.00288961828f, -0.0738681555f,
                   0.00920706987f, 0.00702568889f, -0.0162327271f}));
  EXPECT_THAT(LossAndGradient(options, {-100, 0}),
              Are({0.382788897f, 0, 0, 0, 0.0184141397f, 0.0140513778f,
                   -0.0324654542f}));
}

TEST(Losses, WeighClassesAsPyTorchDoes) {
  const LossOptions options = {.class_weights = {0.5f, 2.0f, 0.25f}};
  EXPECT_THAT(LossAndGradient(options, {2, 0}),
              Are({0.11340747f, 0.0584301315f, 0.0130375242f, -0.0714676604f,
                   -0.0321683511f, 0.0315898098f, 0.000578587526f}));
  EXPECT_THAT(LossAndGradient(options, {-100, 0}),
              Are({0.0494555384f, 0, 0, 0, -0.0482525229f, 0.0473847128f,
                   0.000867881288f}));
  EXPECT_THAT(LossAndGradient(options, {1, 1}),
              Are({3.14538336f, 0.0876451954f, -0.480443716f, 0.392798513f,
                   0.475873739f, -0.476307631f, 0.000433940644f}));
}

TEST(Losses, WeighClassesWithSmoothLabelsAsPyTorchDoes) {
  const LossOptions options = {.label_smoothing = 0.1,
                               .class_weights = {0.5f, 2.0f, 0.25f}};
  EXPECT_THAT(LossAndGradient(options, {2, 0}),
              Are({0.782049358f, 0.0517892726f, -0.072374694f, 0.0205854103f,
                   0.0651509836f, -0.0546665974f, -0.010484308f}));
  EXPECT_THAT(LossAndGradient(options, {-100, 0}),
              Are({0.570243597f, 0, 0, 0, 0.0977264643f, -0.081999898f,
                   -0.015726462f}));
  EXPECT_THAT(LossAndGradient(options, {1, 1}),
              Are({2.9583416f, 0.0787310824f, -0.448169678f, 0.369438589f,
                   0.44593057f, -0.444257647f, -0.00167289795f}));
}

}  // namespace
}  // namespace loadline::executor
