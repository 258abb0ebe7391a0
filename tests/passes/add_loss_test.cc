#include "passes/add_loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::DType;
using models::Graph;
using models::TensorType;
using ::testing::HasSubstr;

Graph ModelWithOutput(std::vector<int64_t> dims, DType dtype = DType::kF32) {
  Builder b;
  const models::ValueId x = b.Input("x", std::move(dims));
  const models::ValueId y = b.Op("Relu", {x});
  b.Output(dtype == DType::kF32
               ? y
               : b.Op("Cast", {y}, {{"to", std::string(DTypeName(dtype))}}));
  return b.graph;
}

LossOptions CrossEntropy(std::vector<int64_t> target) {
  LossOptions options;
  options.target = {DType::kI64, std::move(target)};
  return options;
}

TEST(AddLoss, CrossEntropyReplacesTheOutputs) {
  Graph graph = ModelWithOutput({4, 10});
  ASSERT_TRUE(AddLoss(graph, CrossEntropy({4})).ok());
  EXPECT_EQ(Describe(graph),
            "%0 = Relu(x)\n"
            "%1, %2 = SoftmaxCrossEntropy(%0, target) {class_axis=1}\n"
            "output %1\n");
  EXPECT_TRUE(models::VerifyGraph(graph).ok());
  EXPECT_EQ(graph.value(graph.inputs.back()).name, "target");
  EXPECT_EQ(graph.value(graph.outputs[0]).type, (TensorType{DType::kF32, {}}));
}

TEST(AddLoss, KeepsOutputsAndCountsWhenAsked) {
  Graph graph = ModelWithOutput({4, 10});
  LossOptions options = CrossEntropy({4});
  options.keep_outputs = true;
  options.count_correct = true;
  ASSERT_TRUE(AddLoss(graph, options).ok());
  EXPECT_EQ(Describe(graph),
            "%0 = Relu(x)\n"
            "%1, %2 = SoftmaxCrossEntropy(%0, target) {class_axis=1}\n"
            "%3 = CountCorrect(%0, target) {class_axis=1}\n"
            "output %1\n"
            "output %3\n"
            "output %0\n");
}

TEST(AddLoss, MseTakesATargetOfThePredictionsType) {
  Graph graph = ModelWithOutput({4, 3});
  LossOptions options;
  options.kind = LossKind::kMse;
  options.target = {DType::kF32, {4, 3}};
  ASSERT_TRUE(AddLoss(graph, options).ok());
  EXPECT_EQ(Describe(graph),
            "%0 = Relu(x)\n"
            "%1 = MseLoss(%0, target)\n"
            "output %1\n");
  Graph other = ModelWithOutput({4, 3});
  options.target = {DType::kF32, {4}};
  EXPECT_THAT(AddLoss(other, options).ToString(),
              HasSubstr("prediction f32[4,3], target f32[4]"));
}

TEST(FindClassAxis, IsTheAxisThatTheTargetLacks) {
  struct Case {
    std::vector<int64_t> prediction, target;
    int64_t axis;
  };
  const Case cases[] = {
      {{4, 10}, {4}, 1},             // a classifier
      {{10, 10}, {10}, 1},           // as many classes as examples
      {{2, 16, 65}, {2, 16}, 2},     // a language model
      {{2, 65, 16}, {2, 16}, 1},     // PyTorch's order: classes second
      {{2, 5, 8, 8}, {2, 8, 8}, 1},  // segmentation
      {{7}, {}, 0},                  // one example without a batch axis
  };
  for (const Case& c : cases) {
    const absl::StatusOr<int64_t> axis =
        FindClassAxis({DType::kF32, c.prediction}, CrossEntropy(c.target));
    ASSERT_TRUE(axis.ok()) << axis.status();
    EXPECT_EQ(*axis, c.axis);
  }
}

TEST(FindClassAxis, AsksWhereSeveralFit) {
  LossOptions options = CrossEntropy({2, 16});
  const TensorType prediction{DType::kF32, {2, 16, 16}};
  const absl::Status status = FindClassAxis(prediction, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.ToString(),
              HasSubstr("(1, 2): name it with --class-axis"));
  options.class_axis = -1;
  EXPECT_EQ(*FindClassAxis(prediction, options), 2);
  options.class_axis = 1;
  EXPECT_EQ(*FindClassAxis(prediction, options), 1);
}

TEST(FindClassAxis, RefusesWhatFitsNowhere) {
  const TensorType prediction{DType::kF32, {4, 10}};
  LossOptions options = CrossEntropy({5});
  EXPECT_THAT(FindClassAxis(prediction, options).status().ToString(),
              HasSubstr("prediction f32[4,10], target i64[5]"));
  EXPECT_THAT(FindClassAxis(prediction, options).status().ToString(),
              HasSubstr("the first axis of both must be the batch, 5: if it is "
                        "another axis in the model, export it with the batch "
                        "first"));
  EXPECT_THAT(
      FindClassAxis(prediction, CrossEntropy({4, 2})).status().ToString(),
      Not(HasSubstr("must be the batch")));
  options.class_axis = 2;
  EXPECT_THAT(FindClassAxis(prediction, options).status().ToString(),
              HasSubstr("class axis 2 is not an axis"));
  options.class_axis = 0;
  EXPECT_THAT(FindClassAxis(prediction, options).status().ToString(),
              HasSubstr("does not have the target's shape"));
}

TEST(AddLoss, RefusesWhatCannotBeALoss) {
  Graph integers = ModelWithOutput({4, 10}, DType::kI64);
  EXPECT_THAT(AddLoss(integers, CrossEntropy({4})).ToString(),
              HasSubstr("floating-point prediction"));

  Graph graph = ModelWithOutput({4, 10});
  LossOptions floats = CrossEntropy({4});
  floats.target.dtype = DType::kF32;
  EXPECT_THAT(AddLoss(graph, floats).ToString(), HasSubstr("integer targets"));

  graph.AddInput("target", {DType::kI64, {4}});
  EXPECT_THAT(AddLoss(graph, CrossEntropy({4})).ToString(),
              HasSubstr("already has a value named 'target'"));
}

TEST(AddLoss, AsksWhichOfSeveralOutputs) {
  Builder b;
  const models::ValueId x = b.Input("x", {4, 10});
  b.Output(b.Op("Relu", {x}));
  b.Output(b.Op("Exp", {x}));
  LossOptions options = CrossEntropy({4});
  EXPECT_THAT(AddLoss(b.graph, options).ToString(),
              HasSubstr("several outputs (n0, n1)"));
  options.prediction = "n7";
  EXPECT_THAT(AddLoss(b.graph, options).ToString(),
              HasSubstr("no output named 'n7'"));
  options.prediction = "n1";
  ASSERT_TRUE(AddLoss(b.graph, options).ok());
  EXPECT_EQ(b.graph.nodes.back().inputs[0], *b.graph.Find("n1"));
}

TEST(AddLoss, TakesTheModelsOwnLoss) {
  Builder b;
  const models::ValueId x = b.Input("x", {4, 10});
  b.Output(b.Op("Relu", {x}));
  b.Output(b.Op("ReduceMean", {x}, {{"axes", models::Ints{0, 1}}}));
  LossOptions options;
  options.kind = LossKind::kModel;
  options.prediction = "n0";
  EXPECT_THAT(AddLoss(b.graph, options).ToString(),
              HasSubstr("needs an output of one f32 number; 'n0' is"));
  options.prediction = "n1";
  ASSERT_TRUE(AddLoss(b.graph, options).ok());
  ASSERT_EQ(b.graph.outputs.size(), 1u);
  EXPECT_TRUE(b.graph.value(b.graph.outputs[0]).type.dims.empty());
  EXPECT_EQ(b.graph.inputs.size(), 1u);
}

TEST(LossKindFromName, KnowsItsNames) {
  EXPECT_EQ(*LossKindFromName("cross_entropy"), LossKind::kCrossEntropy);
  EXPECT_EQ(*LossKindFromName("mse"), LossKind::kMse);
  EXPECT_EQ(*LossKindFromName("bce_with_logits"), LossKind::kBce);
  EXPECT_THAT(LossKindFromName("hinge").status().ToString(),
              HasSubstr("unknown loss 'hinge'"));
}

}  // namespace
}  // namespace loadline::passes
