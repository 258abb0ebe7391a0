// Rules that are right pass at their own shapes and at shorter ones; one that
// is wrong is found, and where.
#include "executor/reference/check_gradients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "models/graph.h"
#include "models/ops/operator.h"

namespace loadline::reference {
namespace {

using models::DType;
using models::ValueId;
using ::testing::HasSubstr;

struct Builder {
  models::Graph graph;

  ValueId Input(const char* name, models::Ints dims) {
    return graph.AddInput(name, {DType::kF32, std::move(dims)});
  }
  ValueId Parameter(const char* name, models::Ints dims) {
    return graph.AddParameter(
        name, models::ZeroTensor({DType::kF32, std::move(dims)}));
  }
  ValueId Op(const char* op, std::vector<ValueId> inputs,
             models::Attributes attributes = {}) {
    const auto made =
        graph.AddNode(op, op, std::move(inputs), std::move(attributes));
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? (*made)[0] : models::kNoValue;
  }
};

const GradientCheck* Find(const std::vector<GradientCheck>& checks,
                          const std::string& op) {
  for (const GradientCheck& check : checks) {
    if (check.op == op) return &check;
  }
  return nullptr;
}

// A network with kinks, ties, a mask of -inf, indices and a loss.
Builder Network() {
  Builder b;
  const ValueId x = b.Input("x", {4, 6});
  const ValueId w = b.Parameter("w", {6, 5});
  const ValueId h = b.Op("Relu", {b.Op("MatMul", {x, w})});
  std::vector<float> mask(20, 0);
  mask[3] = -std::numeric_limits<float>::infinity();
  const ValueId masked = b.Op(
      "Add",
      {h, b.graph.AddConstant(
              "mask", models::MakeTensor({DType::kF32, {4, 5}}, mask.data()))});
  const ValueId p = b.Op("Softmax", {masked}, {{"axis", int64_t{1}}});
  const ValueId l = b.Op("Log", {b.Op("Add", {p, b.Op("Exp", {h})})});
  const ValueId largest = b.Op("ReduceMax", {l}, {{"axis", int64_t{1}}});
  b.graph.outputs = {b.Op("ReduceMean", {largest}, {{"keepdims", int64_t{0}}})};
  return b;
}

TEST(CheckGradients, AcceptsTheRulesOfANetwork) {
  const auto checks = CheckGradients(Network().graph);
  EXPECT_EQ(checks.size(), 8u);
  for (const GradientCheck& check : checks) {
    EXPECT_FALSE(check.Wrong()) << check.op << " " << check.worst;
    EXPECT_EQ(check.checked, check.op == "Add" ? 2 : 1) << check.op;
    EXPECT_EQ(check.skipped, 0) << check.op << ": " << check.why;
    EXPECT_EQ(check.smaller, 0) << check.op;
  }
  EXPECT_EQ(Find(checks, "MatMul")->types, "f32[4,6], f32[6,5]");
}

// Errors of one part in 1e5 of one rule, of one sign, of one that is missing.
TEST(CheckGradients, FindsAWrongRule) {
  const Builder b = Network();
  const auto with = [&b](const std::string& op, auto wrong) {
    GradientCheckOptions options;
    options.rule = [op, wrong](models::GradientContext& c) -> absl::Status {
      const absl::Status status =
          models::FindOperator(c.forward().op)->gradient(c);
      return !status.ok() || c.forward().op != op ? status : wrong(c);
    };
    return CheckGradients(b.graph, options);
  };
  const auto scaled = [](float by) {
    return [by](models::GradientContext& c) -> absl::Status {
      const auto factor = c.Scalar(by);
      const auto product = c.Emit("Mul", {c.input_gradients()[0], *factor});
      c.SetInputGradient(0, *product);
      return absl::OkStatus();
    };
  };
  for (const char* op : {"Softmax", "Log", "Exp", "ReduceMax", "Relu"}) {
    for (const float by : {1.00001f, -1.0f}) {
      const auto checks = with(op, scaled(by));
      for (const GradientCheck& check : checks) {
        EXPECT_EQ(check.Wrong(), check.op == op)
            << check.op << " " << check.worst << " with a wrong " << op;
      }
      EXPECT_NEAR(Find(checks, op)->worst, std::abs(1 - by),
                  std::abs(1 - by) * 2);
    }
  }
  const auto missing = with("MatMul", [](models::GradientContext& c) {
    const ValueId none = *c.Emit("Mul", {c.input(1), *c.Scalar(0)});
    c.SetInputGradient(1, none);
    return absl::OkStatus();
  });
  EXPECT_TRUE(Find(missing, "MatMul")->Wrong());
  EXPECT_EQ(Find(missing, "MatMul")->node, b.graph.nodes[0].name);
}

TEST(CheckGradients, ShortensTheAxesOfLargeNodes) {
  Builder b;
  const ValueId x = b.Input("x", {64, 32, 56, 56});
  const ValueId w = b.Parameter("w", {32, 16, 3, 3});
  const ValueId y =
      b.Op("Conv", {x, w},
           {{"group", int64_t{2}}, {"pads", models::Ints{1, 1, 1, 1}}});
  const ValueId bias = b.Parameter("bias", {32, 1, 1});
  b.graph.outputs = {
      b.Op("ReduceMean", {b.Op("Add", {y, bias})}, {{"keepdims", int64_t{0}}})};
  const auto checks = CheckGradients(b.graph);
  ASSERT_EQ(checks.size(), 3u);
  for (const GradientCheck& check : checks) {
    EXPECT_FALSE(check.Wrong()) << check.op << " " << check.worst;
    EXPECT_EQ(check.smaller, 1) << check.op << ": " << check.why;
  }
}

// So many numbers are close to each other.
TEST(CheckGradients, MeetsNoTieAmongManyNumbers) {
  Builder b;
  const ValueId w = b.Parameter("w", {4, 64, 16, 16});
  const ValueId y = b.Op("MaxPool", {w},
                         {{"kernel_shape", models::Ints{3, 3}},
                          {"strides", models::Ints{2, 2}},
                          {"pads", models::Ints{1, 1, 1, 1}}});
  b.graph.outputs = {b.Op("ReduceMax", {y}, {{"axis", int64_t{1}}})};
  for (const uint64_t seed : {1, 2, 3}) {
    for (const GradientCheck& check : CheckGradients(b.graph, {.seed = seed})) {
      EXPECT_FALSE(check.Wrong()) << check.op << " " << check.worst;
      EXPECT_EQ(check.smaller, 0) << check.op;
    }
  }
}

// The loss is one sum over so many numbers that short differences are rounding.
TEST(CheckGradients, BearsTheRoundingOfLargeSums) {
  Builder b;
  const ValueId logits = b.Parameter("logits", {32, 64, 96});
  const ValueId target = b.graph.AddInput("target", {DType::kI64, {32, 64}});
  b.graph.outputs = {b.Op("SoftmaxCrossEntropy", {logits, target},
                          {{"class_axis", int64_t{2}}})};
  const auto checks = CheckGradients(b.graph, {.most_flops = 1e7});
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_FALSE(checks[0].Wrong()) << checks[0].worst;
}

TEST(CheckGradients, SaysWhatItCannotCheck) {
  Builder b;
  const ValueId x = b.Input("x", {64, 64});
  const ValueId w = b.Parameter("w", {64, 64});
  b.graph.outputs = {b.Op("MatMul", {x, w})};
  GradientCheckOptions options;
  options.most_flops = 1;
  const auto checks = CheckGradients(b.graph, options);
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].checked, 0);
  EXPECT_EQ(checks[0].skipped, 1);
  EXPECT_THAT(checks[0].why, HasSubstr("too large"));
}

}  // namespace
}  // namespace loadline::reference
