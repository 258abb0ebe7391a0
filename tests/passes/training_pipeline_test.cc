// The whole pipeline: the text of a small training step, its options, and
// evaluation.
#include "passes/training_pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::DType;
using models::Graph;
using models::Ints;
using models::ValueId;
using ::testing::HasSubstr;
using ::testing::Not;

TrainingOptions Classify(int64_t batch) {
  TrainingOptions options;
  options.loss.target = {DType::kI64, {batch}};
  return options;
}

// A block of a CNN: convolution, batch normalization in training form, dropout,
// pooling, classifier.
Graph ClassifierCnn() {
  Builder b;
  const ValueId x = b.Input("x", {4, 3, 8, 8});
  const ValueId c = b.Op("Conv", {x, b.Parameter("conv.weight", {6, 3, 3, 3})},
                         {{"kernel_shape", Ints{3, 3}},
                          {"strides", Ints{1, 1}},
                          {"pads", Ints{1, 1, 1, 1}},
                          {"dilations", Ints{1, 1}},
                          {"group", int64_t{1}}});
  const ValueId mean = b.State("bn.mean", {6});
  const ValueId var = b.State("bn.var", {6});
  const std::vector<ValueId> n =
      b.Ops("BatchNormTraining",
            {c, b.Parameter("bn.scale", {6}), b.Parameter("bn.bias", {6})},
            {{"epsilon", 1e-5}});
  const std::vector<ValueId> next =
      b.Ops("RunningStatsUpdate", {mean, var, n[1], n[2]},
            {{"momentum", 0.9}, {"epsilon", 1e-5}, {"count", int64_t{256}}});
  b.graph.updates = {{mean, next[0]}, {var, next[1]}};
  const ValueId d = b.Op("Dropout", {b.Op("Relu", {n[0]})},
                         {{"ratio", 0.5}, {"salt", int64_t{1}}});
  const ValueId p =
      b.Op("ReduceMean", {d}, {{"axes", Ints{2, 3}}, {"keepdims", int64_t{0}}});
  const ValueId w = b.Op("Transpose", {b.Parameter("fc.weight", {10, 6})},
                         {{"perm", Ints{1, 0}}});
  b.Output(b.Op("MatMul", {p, w}));
  return b.graph;
}

TEST(BuildTrainingStep, UpdatesEveryParameterOfAnMlp) {
  const absl::StatusOr<Graph> step =
      BuildTrainingStep(SmallMlp(), Classify(4), {});
  ASSERT_TRUE(step.ok()) << step.status();
  const std::string text = Describe(*step);
  for (const char* name :
       {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}) {
    EXPECT_THAT(text, HasSubstr(std::string("update ") + name));
  }
  EXPECT_EQ(step->outputs.size(), 1u);
  EXPECT_EQ(step->updates.size(), 4u);
}

TEST(BuildTrainingStep, IsTheSameEveryTime) {
  TrainingOptions options = Classify(4);
  options.optimizer.kind = OptimizerKind::kAdamW;
  const absl::StatusOr<Graph> a =
      BuildTrainingStep(ClassifierCnn(), options, {});
  const absl::StatusOr<Graph> b =
      BuildTrainingStep(ClassifierCnn(), options, {});
  ASSERT_TRUE(a.ok()) << a.status();
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_EQ(Describe(*a), Describe(*b));
  EXPECT_THAT(Describe(*a), HasSubstr("RunningStatsUpdate(bn.mean, bn.var"));
  EXPECT_EQ(a->updates.size(), 2u + 3 * 4) << "statistics, then p, m, v";
}

TEST(BuildTrainingStep, SwitchesPassesOffByName) {
  PassOptions passes;
  const absl::StatusOr<Graph> with =
      BuildTrainingStep(ClassifierCnn(), Classify(4), passes);
  passes.disabled = {"fuse_transpose"};
  const absl::StatusOr<Graph> without =
      BuildTrainingStep(ClassifierCnn(), Classify(4), passes);
  ASSERT_TRUE(with.ok()) << with.status();
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_THAT(Describe(*with), Not(HasSubstr("Transpose(fc.weight)")));
  EXPECT_THAT(Describe(*without), HasSubstr("Transpose(fc.weight)"));
  passes.disabled = {"add_gradients"};
  EXPECT_THAT(BuildTrainingStep(ClassifierCnn(), Classify(4), passes)
                  .status()
                  .ToString(),
              HasSubstr("required"));
  passes.disabled = {"fuse_gelo"};
  EXPECT_THAT(
      BuildTrainingStep(ClassifierCnn(), Classify(4), passes)
          .status()
          .ToString(),
      HasSubstr("those that can: cut_updates, drop_softmax_guards, "
                "fuse_attention, fuse_bias, fuse_bias_gradient, fuse_gelu, "
                "fuse_gelu_gradient, fuse_transpose, mask_relu_gradient, "
                "merge_duplicates, narrow_constants, remove_dead_nodes"));
}

TEST(BuildTrainingStep, LeavesDropoutOutWhenAsked) {
  TrainingOptions options = Classify(4);
  const absl::StatusOr<Graph> with =
      BuildTrainingStep(ClassifierCnn(), options, {});
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_THAT(Describe(*with), HasSubstr("Dropout"));
  options.no_dropout = true;
  const absl::StatusOr<Graph> without =
      BuildTrainingStep(ClassifierCnn(), options, {});
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_THAT(Describe(*without), Not(HasSubstr("Dropout")));
}

TEST(BuildEvaluation, UsesRunningStatisticsAndChangesNothing) {
  const absl::StatusOr<Graph> graph =
      BuildEvaluation(ClassifierCnn(), Classify(4).loss, {});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(
      Describe(*graph),
      R"(%0 = Conv(x, conv.weight) {dilations=[1,1], group=1, kernel_shape=[3,3], pads=[1,1,1,1], strides=[1,1]}
%1 = BatchNormalization(%0, bn.scale, bn.bias, bn.mean, bn.var) {epsilon=1e-05}
%2 = Relu(%1)
%3 = ReduceMean(%2) {axes=[2,3], keepdims=0}
%4 = MatMul(%3, fc.weight) {trans_b=1}
%5, %6 = SoftmaxCrossEntropy(%4, target) {class_axis=1}
%7 = CountCorrect(%4, target) {class_axis=1}
output %5
output %7
)");
}

TEST(BuildEvaluation, KeepsBatchStatisticsThatAreRead) {
  Builder b;
  const ValueId x = b.Input("x", {4, 3});
  const std::vector<ValueId> n =
      b.Ops("BatchNormTraining",
            {x, b.Parameter("scale", {3}), b.Parameter("bias", {3})},
            {{"epsilon", 1e-5}});
  const ValueId mean = b.State("mean", {3});
  const ValueId var = b.State("var", {3});
  const std::vector<ValueId> next =
      b.Ops("RunningStatsUpdate", {mean, var, n[1], n[2]},
            {{"momentum", 0.9}, {"epsilon", 1e-5}, {"count", int64_t{4}}});
  b.graph.updates = {{mean, next[0]}, {var, next[1]}};
  b.Output(b.Op("Add", {n[0], n[1]}));
  LossOptions loss;
  loss.kind = LossKind::kMse;
  loss.target = {DType::kF32, {4, 3}};
  const absl::StatusOr<Graph> graph = BuildEvaluation(b.graph, loss, {});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(Describe(*graph), HasSubstr("BatchNormTraining"));
  EXPECT_TRUE(graph->updates.empty());
}

}  // namespace
}  // namespace loadline::passes
