// Gradient rules, by the nodes they emit and the values they read. Their
// numbers are checked against finite differences in tests/conformance, where
// kernels exist.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/ops/operator.h"
#include "tests/models/differentiate.h"
#include "tests/models/graph_test_util.h"

namespace loadline::models {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(Gradient, ReadsTheFewestSavedValues) {
  const struct {
    const char* op;
    std::vector<TensorType> inputs;
    Attributes attributes;
    std::vector<std::string> saved;
    std::vector<std::string> ops;
    std::vector<bool> wanted;  // all floats where empty
  } kCases[] = {
      {"Relu", {kX}, {}, {"y"}, {"ReluGrad"}},
      {"Sigmoid", {kX}, {}, {"y"}, {"SigmoidGrad"}},
      {"Tanh", {kX}, {}, {"y"}, {"TanhGrad"}},
      {"Exp", {kX}, {}, {"y"}, {"Mul"}},
      {"Sqrt", {kX}, {}, {"y"}, {"Mul", "Div"}},
      {"Reciprocal", {kX}, {}, {"y"}, {"Mul", "Mul", "Neg"}},
      {"Log", {kX}, {}, {"x0"}, {"Div"}},
      {"Neg", {kX}, {}, {}, {"Neg"}},
      {"Abs", {kX}, {}, {"x0"}, {"Less", "Greater", "Neg", "Where", "Where"}},
      {"Erf", {kX}, {}, {"x0"}, {"ErfGrad"}},
      {"Gelu", {kX}, {{"approximate", "tanh"}}, {"x0"}, {"GeluGrad"}},
      {"Cast", {kX}, {{"to", "f32"}}, {}, {}},
      {"Add", {kX, kX}, {}, {}, {}},
      {"Sub", {kX, kX}, {}, {}, {"Neg"}},
      {"Mul", {kX, kX}, {}, {"x0", "x1"}, {"Mul", "Mul"}},
      {"Div", {kX, kX}, {}, {"x1", "y"}, {"Div", "Mul", "Neg"}},
      {"Max",
       {kX, kX},
       {},
       {"x0", "x1"},
       {"Mul", "Equal", "Where", "Less", "Where", "Less", "Where"}},
      {"Softplus", {kX}, {}, {"x0"}, {"SoftplusGrad"}},
      {"Elu", {kX}, {{"alpha", 1.0}}, {"x0"}, {"EluGrad"}},
      {"Where", {Bool({8}), kX, kX}, {}, {"x0"}, {"Where", "Where"}},
      {"ReduceSum", {kX}, {}, {}, {"Expand"}},
      {"ReduceSum", {kX}, {{"keepdims", 0}}, {}, {"Reshape", "Expand"}},
      {"ReduceSum", {kX}, {{"axes", Ints{}}}, {}, {}},
      {"ReduceMean",
       {kX},
       {{"axes", Ints{2, 3}}, {"keepdims", 0}},
       {},
       {"Mul", "Reshape", "Expand"}},
      {"Reshape", {kX}, {{"shape", Ints{512}}}, {}, {"Reshape"}},
      {"Transpose", {kX}, {{"perm", Ints{1, 2, 3, 0}}}, {}, {"Transpose"}},
      {"Concat", {kC, F32({2})}, {{"axis", 0}}, {}, {"Slice", "Slice"}},
      {"Slice",
       {kC},
       {{"starts", Ints{1}},
        {"ends", Ints{3}},
        {"axes", Ints{0}},
        {"steps", Ints{1}}},
       {},
       {"SliceGrad"}},
      {"Expand", {kC}, {{"shape", Ints{3, 4}}}, {}, {"ReduceSum"}},
      {"Gather", {kX, I64({3})}, {{"axis", 1}}, {"x1"}, {"GatherGrad"}},
      {"Gather",
       {kX, I64({3})},
       {{"axis", 0}, {"padding_row", 1}},
       {"x1"},
       {"GatherGrad", "Expand", "WriteRows"}},
      {"Conv",
       {kX, F32({6, 4, 3, 3}), F32({6})},
       {},
       {"x0", "x1"},
       {"ConvInputGrad", "ConvWeightGrad", "ReduceSum"}},
      {"BatchNormTraining",
       {kX, kC, kC},
       {{"epsilon", 1e-5}},
       {"x0", "x1", "y.1", "y.2"},
       {"BatchNormGrad"}},
      {"LayerNormalization",
       {kX, F32({8}), F32({8})},
       {{"axis", -1}, {"epsilon", 1e-5}},
       {"x0", "x1", "y.1", "y.2"},
       {"LayerNormGrad"}},
      {"Softmax", {kX}, {{"axis", -1}}, {"y"}, {"SoftmaxGrad"}},
      {"LogSoftmax", {kX}, {{"axis", 1}}, {"y"}, {"LogSoftmaxGrad"}},
      {"Attention",
       {kX, kX, F32({2, 4, 8, 3}), F32({8})},
       {{"scale", 0.5}},
       {"x0", "x1", "x2", "x3", "y", "y.1"},
       {"AttentionGrad"},
       {true, true, true, false}},
      {"MaxPool",
       {kX},
       {{"kernel_shape", Ints{2, 2}}},
       {"y.1"},
       {"MaxPoolGrad"}},
      {"AveragePool",
       {kX},
       {{"kernel_shape", Ints{2, 2}}},
       {},
       {"AveragePoolGrad"}},
      {"Dropout", {kX}, {{"ratio", 0.5}, {"salt", 7}}, {}, {"Dropout"}},
      {"SoftmaxCrossEntropy",
       {F32({2, 5}), I64({2})},
       {{"class_axis", -1}},
       {"x0", "x1", "y.1"},
       {"SoftmaxCrossEntropyGrad"}},
      {"MseLoss", {kC, kC}, {}, {"x0", "x1"}, {"MseLossGrad", "MseLossGrad"}},
  };
  for (const auto& c : kCases) {
    DifferentiateOptions options;
    options.attributes = c.attributes;
    options.wanted = c.wanted;
    const Differentiated d = Differentiate(c.op, c.inputs, options);
    ASSERT_TRUE(d.status.ok()) << c.op << d.status;
    EXPECT_EQ(d.Saved(), c.saved) << c.op;
    EXPECT_EQ(d.Ops(), c.ops) << c.op;
  }
}

TEST(Gradient, SumsOverBroadcastDimensions) {
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Pow"}) {
    for (const auto& [a, b] : std::vector<std::pair<TensorType, TensorType>>{
             {F32({3, 4}), F32({4})},
             {F32({4}), F32({3, 4})},
             {F32({3, 1}), F32({1, 4})},
             {F32({}), F32({2, 3})},
             {F32({1, 1, 4}), F32({4})},
             {F32({5, 1, 4}), F32({3, 1})}}) {
      // Differentiate checks the gradients' types.
      EXPECT_TRUE(Differentiate(op, {a, b}).status.ok());
      DifferentiateOptions left;
      left.wanted = {true, false};
      EXPECT_TRUE(Differentiate(op, {a, b}, left).status.ok());
    }
  }
  const Differentiated d = Differentiate("Add", {F32({3, 4, 5}), F32({4, 1})});
  EXPECT_THAT(d.Ops(), ElementsAre("ReduceSum", "Reshape"));
  EXPECT_EQ(d.graph.nodes[1].attributes.IntList("axes"), (Ints{0, 2}));
}

TEST(Gradient, OfSplitFillsMissingPartsWithZeros) {
  DifferentiateOptions options;
  options.attributes = {{"axis", 0}, {"sizes", Ints{1, 2, 1}}};
  options.has_gradient = {true, false, true};
  const Differentiated d = Differentiate("Split", {kC}, options);
  EXPECT_THAT(d.Ops(), ElementsAre("Expand", "Concat"));
  EXPECT_EQ(d.graph.nodes[1].attributes.IntList("shape"), (Ints{2}));
}

TEST(Gradient, OfDropoutHasTheSameMask) {
  DifferentiateOptions options;
  options.attributes = {{"ratio", 0.25}, {"salt", 9}};
  const Differentiated d = Differentiate("Dropout", {kX}, options);
  EXPECT_TRUE(d.graph.nodes[0].attributes == d.graph.nodes[1].attributes);
}

TEST(Gradient, OfFrozenBatchNormReachesEveryInput) {
  DifferentiateOptions options;
  options.attributes = {{"epsilon", 1e-5}};
  EXPECT_TRUE(Differentiate("BatchNormalization", {kX, kC, kC, kC, kC}, options)
                  .status.ok());
  // x alone needs no x.
  options.wanted = {true, false, false, false, false};
  const Differentiated d =
      Differentiate("BatchNormalization", {kX, kC, kC, kC, kC}, options);
  EXPECT_THAT(d.Saved(), UnorderedElementsAre("x1", "x4"));
}

TEST(Gradient, ThroughStatisticsIsRefused) {
  DifferentiateOptions options;
  options.attributes = {{"epsilon", 1e-5}};
  options.has_gradient = {true, true, false};
  EXPECT_EQ(
      Differentiate("BatchNormTraining", {kX, kC, kC}, options).status.code(),
      absl::StatusCode::kUnimplemented);
}

TEST(Gradient, StopsWhereElementsAreNoLongerFloats) {
  DifferentiateOptions options;
  options.attributes = {{"to", "i64"}};
  options.wanted = {false};
  EXPECT_THAT(Differentiate("Cast", {kX}, options).Ops(), IsEmpty());
}

TEST(GradientContext, SharesScalars) {
  Graph g;
  const ValueId x = g.AddInput("x", F32({2}));
  (void)*g.AddNode("Relu", "r", {x});
  GradientContext context(&g, NodeId{0}, {x}, {true});
  const ValueId half = *context.Scalar(0.5f);
  EXPECT_EQ(*context.Scalar(0.5f), half);
  EXPECT_NE(*context.Scalar(0.0f), *context.Scalar(-0.0f));
  EXPECT_EQ(g.value(half).initial->as<float>()[0], 0.5f);
}

}  // namespace
}  // namespace loadline::models
