// Gradient rules, by what they emit and read; their numbers are checked against
// finite differences in tests/conformance, where kernels exist.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_join.h"
#include "models/ops/operator.h"
#include "tests/models/graph_test_util.h"

namespace loadline::models {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// One forward node over inputs x0, x1, ... and its gradient.
struct Differentiated {
  Graph graph;
  size_t forward_values = 0;
  std::vector<ValueId> gradients;
  absl::Status status;

  // Operators of the backward nodes, in order.
  std::vector<std::string> Ops() const {
    std::vector<std::string> ops;
    for (size_t i = 1; i < graph.nodes.size(); ++i) {
      ops.push_back(graph.nodes[i].op);
    }
    return ops;
  }
  // Forward values (and not gradients) that backward nodes read: what must be
  // saved. Inputs are x0, x1, ..., outputs y, y.1, ...
  std::vector<std::string> Saved() const {
    std::vector<std::string> saved;
    for (size_t v = 0; v < forward_values; ++v) {
      bool read = false;
      for (size_t n = 1; n < graph.nodes.size(); ++n) {
        for (ValueId id : graph.nodes[n].inputs) read |= Index(id) == v;
      }
      if (read) saved.push_back(graph.values[v].name);
    }
    return saved;
  }
};

struct Options {
  Attributes attributes;
  std::vector<bool> wanted;        // all floats where empty
  std::vector<bool> has_gradient;  // output 0 alone where empty
  std::vector<std::pair<int, Tensor>> constants;
};

Differentiated Differentiate(const char* op,
                             const std::vector<TensorType>& inputs,
                             Options options = {}) {
  Differentiated d;
  Graph& g = d.graph;
  std::vector<ValueId> ids;
  std::vector<bool> wanted = options.wanted;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = "x" + std::to_string(i);
    const Tensor* constant = nullptr;
    for (const auto& [at, tensor] : options.constants) {
      if (at == static_cast<int>(i)) constant = &tensor;
    }
    ids.push_back(constant ? g.AddConstant(name, *constant)
                           : g.AddInput(name, inputs[i]));
    if (options.wanted.empty()) {
      wanted.push_back(inputs[i].dtype == DType::kF32 && constant == nullptr);
    }
  }
  const auto outputs = g.AddNode(op, "y", ids, options.attributes);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  d.forward_values = g.values.size();
  std::vector<ValueId> dy;
  for (size_t i = 0; i < outputs->size(); ++i) {
    const bool has =
        options.has_gradient.empty() ? i == 0 : options.has_gradient[i];
    const TensorType type = g.value((*outputs)[i]).type;
    dy.push_back(has ? g.AddInput("dy", type) : kNoValue);
  }
  GradientContext context(&g, NodeId{0}, dy, wanted);
  d.status = FindOperator(op)->gradient(context);
  d.gradients = context.input_gradients();
  if (!d.status.ok()) return d;
  EXPECT_TRUE(VerifyGraph(g).ok()) << VerifyGraph(g);
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool any =
        !dy.empty() && dy != std::vector<ValueId>(dy.size(), kNoValue);
    EXPECT_EQ(d.gradients[i] != kNoValue, wanted[i] && any) << op << " " << i;
    if (d.gradients[i] == kNoValue) continue;
    EXPECT_EQ(g.value(d.gradients[i]).type, inputs[i]) << op << " " << i;
  }
  for (size_t n = 1; n < g.nodes.size(); ++n) {
    EXPECT_EQ(g.nodes[n].phase, Phase::kBackward);
  }
  return d;
}

const TensorType kX = F32({2, 4, 8, 8});
const TensorType kC = F32({4});

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
    Options options;
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
      Options left;
      left.wanted = {true, false};
      EXPECT_TRUE(Differentiate(op, {a, b}, left).status.ok());
    }
  }
  const Differentiated d = Differentiate("Add", {F32({3, 4, 5}), F32({4, 1})});
  EXPECT_THAT(d.Ops(), ElementsAre("ReduceSum", "Reshape"));
  EXPECT_EQ(d.graph.nodes[1].attributes.IntList("axes"), (Ints{0, 2}));
}

TEST(Gradient, OfPowWithAConstantExponentNeedsNoLogarithm) {
  const struct {
    float exponent;
    std::vector<std::string> ops;
  } kCases[] = {{0, {"Expand"}},
                {1, {}},
                {2, {"Mul", "Mul"}},
                {3, {"Mul", "Mul", "Mul"}},
                {0.5f, {"Mul", "Pow", "Mul"}}};
  for (const auto& c : kCases) {
    Options options;
    options.constants = {{1, ScalarTensor(c.exponent)}};
    const Differentiated d = Differentiate("Pow", {kX, F32({})}, options);
    EXPECT_EQ(d.Ops(), c.ops) << c.exponent;
  }
}

TEST(Gradient, OfMatMulUsesFlagsInEveryForm) {
  const std::vector<std::pair<Ints, Ints>> shapes = {
      {{2, 3}, {3, 4}},    {{5, 2, 3}, {5, 3, 4}},    {{5, 2, 3}, {3, 4}},
      {{2, 3}, {5, 3, 4}}, {{6, 1, 2, 3}, {5, 3, 4}}, {{1, 2, 3}, {5, 3, 4}}};
  for (const auto& [a, b] : shapes) {
    for (int flags = 0; flags < 4; ++flags) {
      Ints a_dims = a;
      Ints b_dims = b;
      if (flags & 1) std::swap(a_dims.end()[-1], a_dims.end()[-2]);
      if (flags & 2) std::swap(b_dims.end()[-1], b_dims.end()[-2]);
      Options options;
      options.attributes = {{"trans_a", flags & 1}, {"trans_b", flags >> 1}};
      const Differentiated d =
          Differentiate("MatMul", {F32(a_dims), F32(b_dims)}, options);
      ASSERT_TRUE(d.status.ok());
      for (const std::string& op : d.Ops()) {
        EXPECT_TRUE(op == "MatMul" || op == "Reshape" || op == "ReduceSum")
            << op;
      }
    }
  }
}

TEST(Gradient, OfSharedWeightsIsOneFlatProduct) {
  for (int trans_b : {0, 1}) {
    Options options;
    options.attributes = {{"trans_b", trans_b}};
    options.wanted = {false, true};
    const Differentiated d = Differentiate(
        "MatMul", {F32({5, 2, 3}), trans_b ? F32({4, 3}) : F32({3, 4})},
        options);
    EXPECT_THAT(d.Ops(), ElementsAre("Reshape", "Reshape", "MatMul"));
  }
}

TEST(Gradient, OfVectorProductsHasTheVectorsShapes) {
  for (const auto& [a, b] :
       std::vector<std::pair<Ints, Ints>>{{{3}, {3}},
                                          {{3}, {3, 4}},
                                          {{2, 3}, {3}},
                                          {{3}, {5, 3, 4}},
                                          {{5, 2, 3}, {3}}}) {
    EXPECT_TRUE(Differentiate("MatMul", {F32(a), F32(b)}).status.ok());
  }
}

TEST(Gradient, OfGemmKeepsAlphaAndBeta) {
  for (int flags = 0; flags < 4; ++flags) {
    Options options;
    options.attributes = {{"transA", flags & 1},
                          {"transB", flags >> 1},
                          {"alpha", 0.5},
                          {"beta", 2.0}};
    const Differentiated d =
        Differentiate("Gemm",
                      {flags & 1 ? F32({3, 2}) : F32({2, 3}),
                       flags & 2 ? F32({4, 3}) : F32({3, 4}), F32({4})},
                      options);
    EXPECT_THAT(d.Ops(), ElementsAre("Gemm", "Gemm", "ReduceSum", "Mul"));
    EXPECT_EQ(d.graph.nodes[1].attributes.Float("alpha", 0), 0.5);
    EXPECT_EQ(d.graph.nodes[2].attributes.Float("alpha", 0), 0.5);
  }
  EXPECT_THAT(Differentiate("Gemm", {F32({2, 3}), F32({3, 4})}).Ops(),
              ElementsAre("Gemm", "Gemm"));
}

TEST(Gradient, OfSplitFillsMissingPartsWithZeros) {
  Options options;
  options.attributes = {{"axis", 0}, {"sizes", Ints{1, 2, 1}}};
  options.has_gradient = {true, false, true};
  const Differentiated d = Differentiate("Split", {kC}, options);
  EXPECT_THAT(d.Ops(), ElementsAre("Expand", "Concat"));
  EXPECT_EQ(d.graph.nodes[1].attributes.IntList("shape"), (Ints{2}));
}

TEST(Gradient, OfDropoutHasTheSameMask) {
  Options options;
  options.attributes = {{"ratio", 0.25}, {"salt", 9}};
  const Differentiated d = Differentiate("Dropout", {kX}, options);
  EXPECT_TRUE(d.graph.nodes[0].attributes == d.graph.nodes[1].attributes);
}

TEST(Gradient, OfFrozenBatchNormReachesEveryInput) {
  Options options;
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
  Options options;
  options.attributes = {{"epsilon", 1e-5}};
  options.has_gradient = {true, true, false};
  EXPECT_EQ(
      Differentiate("BatchNormTraining", {kX, kC, kC}, options).status.code(),
      absl::StatusCode::kUnimplemented);
}

TEST(Gradient, StopsWhereElementsAreNoLongerFloats) {
  Options options;
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
