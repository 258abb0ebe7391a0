// Evaluation over a whole data set.
#include "executor/train/evaluate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "executor/device/ignored_target.h"
#include "tests/executor/support/toy.h"

namespace loadline::executor {
namespace {

using models::DType;

TEST(Evaluate, MeansOverAllExamplesTheLastPartialBatchToo) {
  const Toy full = MakeToy({.batch = 4, .train = false});
  const Toy rest = MakeToy({.batch = 2, .train = false});
  const Toy single = MakeToy({.batch = 1, .train = false});
  const DataSet data = ToyData(full, 10);
  const planner::Plan full_plan = KeepPlan(full);
  const planner::Plan rest_plan = KeepPlan(rest);
  const planner::Plan single_plan = KeepPlan(single);
  CpuDevice a(ToyDevice()), b(ToyDevice()), c(ToyDevice());
  auto full_program = Load(full.graph, full.problem, full_plan, a);
  auto rest_program = Load(rest.graph, rest.problem, rest_plan, b);
  auto single_program = Load(single.graph, single.problem, single_plan, c);
  ASSERT_TRUE(full_program.ok()) << full_program.status();
  Evaluator both(data);
  ASSERT_TRUE(both.Run(**full_program).ok());
  EXPECT_EQ(both.left(), 2);
  ASSERT_TRUE(both.Run(**rest_program).ok());
  EXPECT_EQ(both.left(), 0);
  Evaluator one(data);
  ASSERT_TRUE(one.Run(**single_program).ok());
  const Evaluation got = both.result();
  EXPECT_EQ(got.examples, 10);
  EXPECT_NEAR(got.loss, one.result().loss, 1e-5 * one.result().loss);
  // The toy's count is 1 in every batch, of batch * width targets.
  EXPECT_DOUBLE_EQ(*got.accuracy, 3.0 / (10 * 64));
}

// Two classes whose logits are the input: a target is right where its logit is
// the larger one.
models::Graph Classifier(int64_t batch,
                         const std::vector<float>& class_weights = {}) {
  models::Graph graph;
  const auto logits = graph.AddInput("logits", {DType::kF32, {batch, 2}});
  const auto target = graph.AddInput("target", {DType::kI64, {batch}});
  const models::Attributes axis = {{"class_axis", int64_t{1}}};
  std::vector<models::ValueId> inputs = {logits, target};
  if (!class_weights.empty()) {
    inputs.push_back(models::kNoValue);
    inputs.push_back(graph.AddConstant(
        "weights",
        models::MakeTensor({DType::kF32, {2}}, class_weights.data())));
  }
  graph.outputs.push_back(
      (*graph.AddNode("SoftmaxCrossEntropy", "loss", inputs, axis))[0]);
  graph.outputs.push_back(
      (*graph.AddNode("CountCorrect", "count", {logits, target}, axis))[0]);
  return graph;
}

// Data for Classifier.
DataSet FourExamples(const std::vector<int64_t>& targets) {
  const std::vector<float> logits = {0, 1, 0, 2, 3, 0, 0, 4};
  DataSet data;
  data.examples = 4;
  const auto add = [&data](const char* name, const auto& numbers,
                           int64_t row_bytes) {
    const auto* bytes = reinterpret_cast<const std::byte*>(numbers.data());
    data.columns.push_back({name, row_bytes, {bytes, bytes + 4 * row_bytes}});
  };
  add("logits", logits, 8);
  add("target", targets, 8);
  return data;
}

TEST(Evaluate, LeavesOutIgnoredTargets) {
  const DataSet data =
      FourExamples({1, kIgnoredTarget, kIgnoredTarget, kIgnoredTarget});
  // The second batch has no target at all.
  const Toy toy = ToyOf(Classifier(2));
  const planner::Plan plan = KeepPlan(toy);
  CpuDevice device;
  auto program = Load(toy.graph, toy.problem, plan, device);
  ASSERT_TRUE(program.ok()) << program.status();
  Evaluator evaluator(data);
  ASSERT_TRUE(evaluator.Run(**program).ok());
  EXPECT_NEAR(evaluator.result().loss, std::log1p(std::exp(-1.0)), 1e-6);
  EXPECT_EQ(*evaluator.result().accuracy, 1.0);
}

TEST(CheckHasTargets, WantsOneThatCounts) {
  constexpr int64_t kNone = kIgnoredTarget;
  EXPECT_EQ(
      CheckHasTargets(FourExamples({kNone, kNone, kNone, 1}), Classifier(2)),
      absl::OkStatus());
  const DataSet none = FourExamples({kNone, kNone, kNone, kNone});
  EXPECT_EQ(CheckHasTargets(none, Classifier(2)).message(),
            "array 'target': no target of the 4 examples counts: each is -100");
  EXPECT_EQ(
      CheckHasTargets(FourExamples({0, kNone, 0, 0}), Classifier(2, {0, 1}))
          .message(),
      "array 'target': no target of the 4 examples counts: each is "
      "-100, or of a class whose weight is 0");
}

// The mean over all data is the same for every size of batch.
TEST(Evaluate, WeighsBatchesByTheClassesOfTheirTargets) {
  const DataSet data = FourExamples({1, 0, kIgnoredTarget, 1});
  const double weighted = 0.25 * std::log1p(std::exp(-1.0)) +
                          2 * std::log1p(std::exp(2.0)) +
                          0.25 * std::log1p(std::exp(-4.0));
  for (const int64_t batch : {1, 2, 4}) {
    const Toy toy = ToyOf(Classifier(batch, {2, 0.25}));
    const planner::Plan plan = KeepPlan(toy);
    CpuDevice device;
    auto program = Load(toy.graph, toy.problem, plan, device);
    ASSERT_TRUE(program.ok()) << program.status();
    Evaluator evaluator(data);
    ASSERT_TRUE(evaluator.Run(**program).ok());
    EXPECT_NEAR(evaluator.result().loss, weighted / 2.5, 1e-6) << batch;
    EXPECT_NEAR(*evaluator.result().accuracy, 2.0 / 3, 1e-9);
  }
}

// A mask that is the same for all examples.
TEST(Evaluate, GivesEveryBatchWhatHasNoExamples) {
  models::Graph graph;
  const auto x = graph.AddInput("x", {DType::kF32, {2, 1}});
  const auto mask = graph.AddInput("mask", {DType::kF32, {1, 1}});
  const auto target = graph.AddInput("target", {DType::kF32, {2, 1}});
  const auto y = (*graph.AddNode("Mul", "y", {x, mask}))[0];
  graph.outputs.push_back((*graph.AddNode("MseLoss", "loss", {y, target}))[0]);
  const auto column = [](const char* name, std::vector<float> numbers) {
    Column column = {.name = name, .row_bytes = 4};
    column.data.resize(numbers.size() * 4);
    std::memcpy(column.data.data(), numbers.data(), column.data.size());
    return column;
  };
  DataSet data = {.examples = 4,
                  .columns = {column("x", {1, 2, 3, 4}), column("mask", {2}),
                              column("target", {0, 0, 0, 0})}};
  data.columns[1].every_step = true;
  const Toy toy = ToyOf(std::move(graph));
  const planner::Plan plan = KeepPlan(toy);
  CpuDevice device;
  auto program = Load(toy.graph, toy.problem, plan, device);
  ASSERT_TRUE(program.ok()) << program.status();
  Evaluator evaluator(data);
  ASSERT_EQ(evaluator.Run(**program), absl::OkStatus());
  EXPECT_DOUBLE_EQ(evaluator.result().loss, (4 + 16 + 36 + 64) / 4.0);
  data.columns[1].row_bytes = 2;
  Evaluator other(data);
  EXPECT_EQ(other.Run(**program).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Evaluate, StopsBetweenBatchesWhenAsked) {
  const Toy toy = MakeToy({.batch = 4, .train = false});
  const planner::Plan plan = KeepPlan(toy);
  const DataSet data = ToyData(toy, 12);
  CpuDevice device(ToyDevice());
  auto program = Load(toy.graph, toy.problem, plan, device);
  ASSERT_TRUE(program.ok()) << program.status();
  const std::atomic<bool> stop{true};
  Evaluator evaluator(data);
  EXPECT_EQ(evaluator.Run(**program, &stop).code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(evaluator.left(), 8);
}

}  // namespace
}  // namespace loadline::executor
