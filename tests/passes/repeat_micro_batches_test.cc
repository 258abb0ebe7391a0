// Steps written out part by part.
#include "passes/repeat_micro_batches.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "models/micro_batches.h"
#include "models/text.h"
#include "passes/structure.h"
#include "passes/training_pipeline.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::DType;
using models::ValueId;

models::Graph MseModel(bool dropout) {
  Builder b;
  ValueId x = b.Input("x", {4, 3});
  if (dropout) x = b.Op("Dropout", {x}, {{"ratio", 0.5}, {"salt", int64_t{7}}});
  b.Output(b.Op("MatMul", {x, b.Parameter("w", {3, 2})}));
  return std::move(b.graph);
}

TrainingOptions MseOptions(int64_t parts) {
  TrainingOptions options;
  options.loss.kind = LossKind::kMse;
  options.loss.target = {DType::kF32, {4, 2}};
  options.optimizer.kind = OptimizerKind::kSgd;
  options.micro_batches = parts;
  return options;
}

TEST(RepeatMicroBatches, AddsGradientsInOrderBeforeOneUpdate) {
  const auto step = BuildTrainingStep(MseModel(false), MseOptions(2), {});
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(models::MicroBatchesOf(*step), 2);
  ASSERT_EQ(step->inputs.size(), 4u);
  EXPECT_EQ(step->value(step->inputs[0]).name, "x");
  EXPECT_EQ(step->value(step->inputs[1]).name, "x@2");
  EXPECT_EQ(step->value(step->inputs[1]).type.ToString(), "f32[2,3]");
  std::map<std::string, int> ops;
  for (const models::Node& node : step->nodes) ++ops[node.op];
  EXPECT_EQ(ops["Sgd"], 1);
  EXPECT_EQ(ops["MseLoss"], 2);
  EXPECT_EQ(ops["MseLossGrad"], 2);
  EXPECT_EQ(ops["MatMul"], 4);
  EXPECT_EQ(ops["Add"], 2);  // of losses, and of gradients
  // The sum of the gradients is made directly after the second one.
  const models::Node& update = step->nodes.back();
  ASSERT_EQ(update.op, "Sgd");
  const models::Node& sum = step->nodes[step->nodes.size() - 2];
  EXPECT_EQ(sum.op, "Add");
  EXPECT_EQ(sum.outputs[0], update.inputs[1]);
}

TEST(RepeatMicroBatches, CountsAllTargetsOnce) {
  TrainingOptions options;
  options.loss.target = {DType::kI64, {4}};
  options.micro_batches = 4;
  const auto step = BuildTrainingStep(SmallMlp(), options, {});
  ASSERT_TRUE(step.ok()) << step.status();
  int counts = 0;
  for (const models::Node& node : step->nodes) {
    if (node.op != "CountTargets") continue;
    ++counts;
    EXPECT_EQ(node.inputs.size(), 4u);
  }
  EXPECT_EQ(counts, 1);
}

// Part j takes the random numbers of its elements of the whole batch, and its
// backward pass the same ones.
TEST(RepeatMicroBatches, NumbersRandomElementsThrough) {
  Builder b;
  const ValueId x = b.Input("x", {4, 3});
  const ValueId h = b.Op("MatMul", {x, b.Parameter("v", {3, 3})});
  const ValueId d =
      b.Op("Dropout", {h}, {{"ratio", 0.5}, {"salt", int64_t{7}}});
  b.Output(b.Op("MatMul", {d, b.Parameter("w", {3, 2})}));
  const auto step = BuildTrainingStep(std::move(b.graph), MseOptions(2), {});
  ASSERT_TRUE(step.ok()) << step.status();
  std::map<int64_t, int> offsets;
  for (const models::Node& node : step->nodes) {
    if (node.op == "Dropout") ++offsets[node.attributes.Int("offset", -1)];
  }
  EXPECT_EQ(offsets, (std::map<int64_t, int>{{0, 2}, {6, 2}}));
}

TEST(RepeatMicroBatches, KeepsWhatNoInputLeadsToOnce) {
  Builder b;
  const ValueId x = b.Input("x", {4, 3});
  const ValueId w = b.Op("Exp", {b.Parameter("w", {3, 2})});
  b.Output(b.Op("MatMul", {x, w}));
  const auto step = BuildTrainingStep(std::move(b.graph), MseOptions(4), {});
  ASSERT_TRUE(step.ok()) << step.status();
  int exps = 0;
  for (const models::Node& node : step->nodes) exps += node.op == "Exp";
  EXPECT_EQ(exps, 1);
}

// The norm is that of the whole gradients, and the average that of the updated
// parameters.
TEST(RepeatMicroBatches, ClipsAndAveragesOnceForAllParts) {
  TrainingOptions options = MseOptions(2);
  options.optimizer.clip_norm = 1;
  options.optimizer.average = 0.9;
  const auto step = BuildTrainingStep(MseModel(false), options, {});
  ASSERT_TRUE(step.ok()) << step.status();
  std::map<std::string, const models::Node*> only;
  std::map<std::string, int> ops;
  for (const models::Node& node : step->nodes) {
    only[node.op] = &node;
    ++ops[node.op];
  }
  ASSERT_EQ(ops["SumSquares"], 1);
  ASSERT_EQ(ops["ClipFactor"], 1);
  ASSERT_EQ(ops["Sgd"], 1);
  EXPECT_EQ(ops["AverageUpdate"], 1);
  const models::GraphIndex index = models::IndexGraph(*step);
  const ValueId gradient = only["SumSquares"]->inputs[0];
  EXPECT_EQ(gradient, only["Sgd"]->inputs[1]);
  const int32_t maker = index.producer[models::Index(gradient)];
  ASSERT_GE(maker, 0);
  EXPECT_EQ(step->nodes[static_cast<size_t>(maker)].op, "Add");
}

TEST(RepeatMicroBatches, UpdatesStatisticsByOnePartAfterTheOther) {
  TrainingOptions options = MseOptions(3);
  options.loss.target = {DType::kF32, {12, 2}};
  options.statistics = models::BatchStatistics::kOfPart;
  const auto step = BuildTrainingStep(BatchNormModel(12), options, {});
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(NameWithStructure("net", *step),
            "net, 3 micro-batches with own statistics");
  std::vector<ValueId> statistics;
  for (const models::Node& node : step->nodes) {
    if (node.op == "BatchNormTraining") {
      statistics.push_back(node.outputs[1]);
      statistics.push_back(node.outputs[2]);
    }
    if (node.op != "RunningStatsUpdate") continue;
    ASSERT_EQ(node.inputs.size(), 8u);
    EXPECT_EQ(std::vector<ValueId>(node.inputs.begin() + 2, node.inputs.end()),
              statistics);
  }
  EXPECT_EQ(statistics.size(), 6u);
}

TEST(RepeatMicroBatches, RefusesStateOfTheWholeBatch) {
  Builder b;
  const ValueId x = b.Input("x", {4, 3});
  const ValueId s = b.State("s", {4, 3});
  const ValueId next =
      b.Op("AverageUpdate", {s, b.Op("Relu", {x})}, {{"decay", 0.5}});
  b.graph.updates.emplace_back(s, next);
  b.Output(b.Op("MseLoss", {x, x}));
  const absl::Status status = RepeatMicroBatches(b.graph, 2);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("AverageUpdate"), std::string::npos)
      << status;
}

TEST(RepeatMicroBatches, TextKeepsTheNumberOfParts) {
  const auto step = BuildTrainingStep(MseModel(true), MseOptions(2), {});
  ASSERT_TRUE(step.ok()) << step.status();
  models::LargeContents large;
  const std::string text = models::GraphToText(*step, &large);
  const auto again = models::GraphFromText(text, large);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(models::MicroBatchesOf(*again), 2);
  EXPECT_EQ(models::GraphToText(*again), models::GraphToText(*step));
}

}  // namespace
}  // namespace loadline::passes
