// Only the structure: which gradients are computed, and in which order.
// tests/conformance/gradient_test.cc checks the numbers.
#include "passes/add_gradients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/add_loss.h"
#include "passes/remove_dead_nodes.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::DType;
using models::Graph;
using models::ValueId;
using ::testing::HasSubstr;

int Count(const Graph& graph, absl::string_view op) {
  int count = 0;
  for (const models::Node& node : graph.nodes) count += node.op == op;
  return count;
}

// Mean of all elements of `value`.
ValueId MeanOf(Builder& b, ValueId value) {
  return b.Op("ReduceMean", {value}, {{"keepdims", int64_t{0}}});
}

TEST(AddGradients, GivesEveryParameterOneOfItsType) {
  Graph graph = SmallMlp();
  LossOptions loss;
  loss.target = {DType::kI64, {4}};
  ASSERT_TRUE(AddLoss(graph, loss).ok());
  const size_t forward = graph.nodes.size();
  const absl::StatusOr<Gradients> gradients =
      AddGradients(graph, graph.outputs[0]);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  EXPECT_TRUE(models::VerifyGraph(graph).ok());
  ASSERT_EQ(gradients->size(), 4u);
  for (const auto& [parameter, gradient] : *gradients) {
    EXPECT_EQ(graph.value(parameter).kind, models::ValueKind::kParameter);
    EXPECT_EQ(graph.value(parameter).type, graph.value(gradient).type);
  }
  for (size_t i = forward; i < graph.nodes.size(); ++i) {
    EXPECT_EQ(graph.nodes[i].phase, models::Phase::kBackward);
  }
  EXPECT_EQ(Count(graph, "SoftmaxCrossEntropyGrad"), 1);
  EXPECT_EQ(Count(graph, "ReluGrad"), 1);
}

TEST(AddGradients, TakesObservedRangesForConstants) {
  Builder b;
  const ValueId x = b.Input("x", {4, 8});
  const ValueId w = b.Parameter("w", {8, 3});
  const auto range = b.graph.AddNode("ValueRange", "range", {w});
  ASSERT_TRUE(range.ok());
  const models::Attributes bits = {{"bits", 8}, {"signed", 0}};
  const auto grid = b.graph.AddNode("QuantizationGrid", "grid", *range, bits);
  ASSERT_TRUE(grid.ok());
  const auto quantized =
      b.graph.AddNode("FakeQuantize", "q", {w, (*grid)[0], (*grid)[1]}, bits);
  ASSERT_TRUE(quantized.ok());
  const ValueId loss = MeanOf(b, b.Op("MatMul", {x, (*quantized)[0]}));
  b.Output(loss);
  const absl::StatusOr<Gradients> gradients = AddGradients(b.graph, loss);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  EXPECT_EQ(gradients->size(), 1u);
  EXPECT_EQ(Count(b.graph, "FakeQuantizeGrad"), 1);
  EXPECT_EQ(Count(b.graph, "FakeQuantizeScaleGrad"), 0);
}

TEST(AddGradients, ComputesNothingTowardInputs) {
  Builder b;
  const ValueId x = b.Input("x", {4, 8});
  const ValueId w = b.Parameter("w", {8, 3});
  const ValueId y = b.Op("MatMul", {b.Op("Exp", {x}), w});
  const ValueId loss = MeanOf(b, y);
  b.Output(loss);
  const absl::StatusOr<Gradients> gradients = AddGradients(b.graph, loss);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  EXPECT_EQ(gradients->size(), 1u);
  // One product forward, one for w, none for the input.
  EXPECT_EQ(Count(b.graph, "MatMul"), 2);
}

TEST(AddGradients, AddsTheContributionsOfAllReaders) {
  Builder b;
  const ValueId w = b.Parameter("w", {3, 3});
  const ValueId a = b.Op("Relu", {w});
  const ValueId c = b.Op("Tanh", {w});
  const ValueId d = b.Op("Sigmoid", {w});
  const ValueId loss = MeanOf(b, b.Op("MatMul", {b.Op("MatMul", {a, c}), d}));
  b.Output(loss);
  const absl::StatusOr<Gradients> gradients = AddGradients(b.graph, loss);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  const models::GraphIndex index = models::IndexGraph(b.graph);
  const auto producer = [&](ValueId id) -> const models::Node& {
    return b.graph.nodes[index.producer[Index(id)]];
  };
  // ((SigmoidGrad + TanhGrad) + ReluGrad): reverse order of the readers.
  const models::Node& last = producer(gradients->at(w));
  ASSERT_EQ(last.op, "Add");
  EXPECT_EQ(producer(last.inputs[1]).op, "ReluGrad");
  const models::Node& first = producer(last.inputs[0]);
  ASSERT_EQ(first.op, "Add");
  EXPECT_EQ(producer(first.inputs[0]).op, "SigmoidGrad");
  EXPECT_EQ(producer(first.inputs[1]).op, "TanhGrad");
}

TEST(AddGradients, StopsAtIntegersAndLeavesOutWhatTheLossIgnores) {
  Builder b;
  const ValueId w = b.Parameter("w", {4});
  const ValueId steps = b.Parameter("steps", {4});
  b.Parameter("unused", {4});
  const ValueId whole =
      b.Op("Cast", {b.Op("Cast", {steps}, {{"to", std::string("i64")}})},
           {{"to", std::string("f32")}});
  const ValueId loss = MeanOf(b, b.Op("Mul", {w, whole}));
  b.Output(loss);
  const absl::StatusOr<Gradients> gradients = AddGradients(b.graph, loss);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  EXPECT_EQ(gradients->size(), 1u);
  EXPECT_TRUE(gradients->contains(w));
}

TEST(AddGradients, ListsEveryNodeWithoutARule) {
  Builder b;
  const ValueId w = b.Parameter("w", {4});
  const ValueId g = b.Input("g", {4});
  const ValueId once = b.Op("Sgd", {w, g});
  const ValueId twice = b.Op("Sgd", {b.Op("Exp", {once}), g});
  const ValueId loss = MeanOf(b, twice);
  b.Output(loss);
  const absl::Status status = AddGradients(b.graph, loss).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(status.ToString(), HasSubstr("Sgd 'n2', Sgd 'n0'"));
}

TEST(AddGradients, RefusesALossWithoutParametersOrOfManyNumbers) {
  Builder b;
  const ValueId x = b.Input("x", {4});
  const ValueId many = b.Op("Mul", {x, b.Parameter("w", {4})});
  const ValueId fixed = MeanOf(b, x);
  EXPECT_THAT(AddGradients(b.graph, fixed).status().ToString(),
              HasSubstr("nothing to train"));
  EXPECT_THAT(AddGradients(b.graph, many).status().ToString(),
              HasSubstr("one f32 number"));
}

}  // namespace
}  // namespace loadline::passes
