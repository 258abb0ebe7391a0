// Every gradient rule against finite differences, through AddGradients and the
// CPU's kernels. For outputs y of an operator and fixed random weights r, the
// number L = Σ r·y is differentiated both ways toward every element of every
// parameter.
//
// Parameters hold distinct numbers, evenly spaced and shuffled, none nearer to
// 0 or to another than the difference's step: no kink of Relu, Abs or MaxPool
// lies between the two sides.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "models/graph.h"
#include "models/ops/operator.h"
#include "passes/add_gradients.h"
#include "tests/conformance/interpreter.h"

namespace loadline::executor {
namespace {

using models::Attributes;
using models::DType;
using models::Graph;
using models::Ints;
using models::TensorType;
using models::ValueId;

constexpr float kStep = 1.0f / 128;
constexpr StepScalars kScalars{.learning_rate = 0, .step = 3, .seed = 7};

class Builder {
 public:
  explicit Builder(uint64_t seed) : random_(seed) {}

  // Shuffled, evenly spaced over (low, high).
  std::vector<float> Spaced(size_t count, float low, float high) {
    std::vector<float> numbers(count);
    for (size_t i = 0; i < count; ++i) {
      numbers[i] = low + (high - low) * (i + 0.5f) / count;
    }
    std::shuffle(numbers.begin(), numbers.end(), random_);
    return numbers;
  }
  ValueId Parameter(std::vector<int64_t> dims, float low = -1, float high = 1) {
    const TensorType type{DType::kF32, std::move(dims)};
    return graph.AddParameter(
        "p",
        models::MakeTensor(type, Spaced(type.elements(), low, high).data()));
  }
  ValueId Constant(std::vector<int64_t> dims, float low = -1, float high = 1) {
    const TensorType type{DType::kF32, std::move(dims)};
    return graph.AddConstant(
        "c",
        models::MakeTensor(type, Spaced(type.elements(), low, high).data()));
  }
  // Integers below `limit`, repeats likely.
  ValueId Indices(std::vector<int64_t> dims, int64_t limit) {
    const TensorType type{DType::kI64, std::move(dims)};
    std::vector<int64_t> numbers(static_cast<size_t>(type.elements()));
    for (int64_t& n : numbers) n = static_cast<int64_t>(random_() % limit);
    return graph.AddConstant("i", models::MakeTensor(type, numbers.data()));
  }
  std::vector<ValueId> Ops(absl::string_view op, std::vector<ValueId> inputs,
                           Attributes attributes = {}) {
    absl::StatusOr<std::vector<ValueId>> outputs =
        graph.AddNode(op, "n", std::move(inputs), std::move(attributes));
    EXPECT_TRUE(outputs.ok()) << op << ": " << outputs.status();
    return outputs.ok() ? *outputs : std::vector<ValueId>(8, ValueId{0});
  }
  ValueId Op(absl::string_view op, std::vector<ValueId> inputs,
             Attributes attributes = {}) {
    return Ops(op, std::move(inputs), std::move(attributes))[0];
  }

  Graph graph;

 private:
  std::mt19937_64 random_;
};

struct Case {
  std::string name;  // operator, then what is special
  // Builds the graph; returns the outputs that are differentiated.
  std::function<std::vector<ValueId>(Builder&)> build;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

// L = Σ r·y as nodes.
ValueId WeightedSum(Builder& b, const std::vector<ValueId>& outputs) {
  ValueId sum = models::kNoValue;
  for (ValueId y : outputs) {
    const ValueId r = b.Constant(b.graph.value(y).type.dims);
    const ValueId part =
        b.Op("ReduceSum", {b.Op("Mul", {y, r})}, {{"keepdims", int64_t{0}}});
    sum = sum == models::kNoValue ? part : b.Op("Add", {sum, part});
  }
  return sum;
}

// The same from the outputs' contents, added in double precision.
double WeightedSum(const Graph& graph, Interpreter& run,
                   const std::vector<ValueId>& outputs) {
  double sum = 0;
  for (const models::Node& node : graph.nodes) {
    if (node.op != "Mul" ||
        std::find(outputs.begin(), outputs.end(), node.inputs[0]) ==
            outputs.end() ||
        graph.value(node.inputs[1]).kind != models::ValueKind::kConstant) {
      continue;
    }
    const absl::Span<const float> y = run.Contents<float>(node.inputs[0]);
    const absl::Span<const float> r = run.Contents<float>(node.inputs[1]);
    for (size_t i = 0; i < y.size(); ++i) sum += double{y[i]} * double{r[i]};
  }
  return sum;
}

void CheckCase(const Case& c, uint64_t seed) {
  Builder b(seed);
  const std::vector<ValueId> outputs = c.build(b);
  if (testing::Test::HasFailure()) return;
  const ValueId loss = WeightedSum(b, outputs);
  b.graph.outputs = {loss};
  const Graph forward = b.graph;
  const absl::StatusOr<passes::Gradients> gradients =
      passes::AddGradients(b.graph, loss);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  ASSERT_TRUE(models::VerifyGraph(b.graph).ok());

  auto step = Interpreter::Make(b.graph);
  ASSERT_TRUE(step.ok()) << step.status();
  ASSERT_TRUE((*step)->Run(kScalars).ok());
  auto run = Interpreter::Make(forward);
  ASSERT_TRUE(run.ok()) << run.status();
  for (size_t v = 0; v < forward.values.size(); ++v) {
    const ValueId parameter{static_cast<int32_t>(v)};
    if (forward.values[v].kind != models::ValueKind::kParameter) continue;
    ASSERT_TRUE(gradients->contains(parameter));
    const absl::Span<const float> found =
        (*step)->Contents<float>(gradients->at(parameter));
    const absl::Span<float> p = (*run)->Contents<float>(parameter);
    for (size_t i = 0; i < p.size(); ++i) {
      const float before = p[i];
      p[i] = before + kStep;
      ASSERT_TRUE((*run)->Run(kScalars).ok());
      const double above = WeightedSum(forward, **run, outputs);
      p[i] = before - kStep;
      ASSERT_TRUE((*run)->Run(kScalars).ok());
      const double below = WeightedSum(forward, **run, outputs);
      p[i] = before;
      const double expected = (above - below) / (2 * kStep);
      EXPECT_NEAR(found[i], expected, 2e-3 * (1 + std::abs(expected)))
          << c.name << ", seed " << seed << ", parameter " << v << ", element "
          << i;
      if (testing::Test::HasFailure()) return;
    }
  }
}

Case Unary(const std::string& op, float low = -1, float high = 1,
           Attributes attributes = {}, const std::string& special = "") {
  return {op + special, [=](Builder& b) -> std::vector<ValueId> {
            return {b.Op(op, {b.Parameter({3, 4}, low, high)}, attributes)};
          }};
}

// `a` and `b` of the given shapes, `b` in (low, 2).
Case Binary(const std::string& op, Ints a, Ints b, float low = -2) {
  return {op + " " + std::to_string(a.size()) + "d and " +
              std::to_string(b.size()) + "d",
          [=](Builder& builder) -> std::vector<ValueId> {
            const float low_a = op == "Pow" ? 0.5f : -2.0f;
            return {builder.Op(op, {builder.Parameter(a, low_a, 2),
                                    builder.Parameter(b, low, 2)})};
          }};
}

Case Product(const std::string& special, Ints a, Ints b, Attributes attributes,
             const std::string& op = "MatMul") {
  return {op + special, [=](Builder& builder) -> std::vector<ValueId> {
            return {builder.Op(op, {builder.Parameter(a), builder.Parameter(b)},
                               attributes)};
          }};
}

Case Convolution(const std::string& special, Ints x, Ints w, bool bias,
                 Ints strides, Ints pads, Ints dilations, int64_t group) {
  return {"Conv" + special, [=](Builder& b) -> std::vector<ValueId> {
            std::vector<ValueId> inputs = {b.Parameter(x), b.Parameter(w)};
            if (bias) inputs.push_back(b.Parameter({w[0]}));
            return {b.Op("Conv", inputs,
                         {{"kernel_shape", Ints(w.begin() + 2, w.end())},
                          {"strides", strides},
                          {"pads", pads},
                          {"dilations", dilations},
                          {"group", group}})};
          }};
}

// Of an output y of `y` the Conv over x of `x`.
Case TransposedConvolution(const std::string& special, Ints y, Ints w, Ints x,
                           Ints strides, Ints pads, Ints dilations,
                           int64_t group) {
  return {"ConvInputGrad" + special, [=](Builder& b) -> std::vector<ValueId> {
            return {b.Op("ConvInputGrad", {b.Parameter(y), b.Parameter(w)},
                         {{"kernel_shape", Ints(w.begin() + 2, w.end())},
                          {"strides", strides},
                          {"pads", pads},
                          {"dilations", dilations},
                          {"group", group},
                          {"shape", x}})};
          }};
}

std::vector<Case> PointwiseCases() {
  return {
      Unary("Relu"),
      Unary("Sigmoid", -3, 3),
      Unary("Tanh", -2, 2),
      Unary("Exp"),
      Unary("Log", 0.5, 2),
      Unary("Sqrt", 0.5, 2),
      Unary("Neg"),
      Unary("Abs"),
      Unary("Erf", -2, 2),
      Unary("Reciprocal", 0.7, 2),
      Unary("Gelu", -3, 3, {{"approximate", std::string("none")}}),
      Unary("Gelu", -3, 3, {{"approximate", std::string("tanh")}}, " tanh"),
      Unary("Cast", -1, 1, {{"to", std::string("f32")}}),
      Binary("Add", {2, 3, 4}, {2, 3, 4}),
      Binary("Add", {4, 1}, {2, 1, 3}),
      Binary("Sub", {2, 3}, {3}),
      Binary("Sub", {}, {2, 3}),
      Binary("Mul", {2, 3, 4}, {3, 1}),
      Binary("Mul", {1, 4}, {3, 4}),
      Binary("Div", {2, 3}, {2, 3}, 0.7f),
      Binary("Div", {3}, {2, 3}, 0.7f),
      Binary("Div", {2, 3}, {}, 0.7f),
      Binary("Pow", {2, 3}, {3}),
      {"Mul of a value with itself",
       [](Builder& b) -> std::vector<ValueId> {
         const ValueId x = b.Parameter({3, 4});
         return {b.Op("Mul", {x, x})};
       }},
      {"Where broadcast",
       [](Builder& b) -> std::vector<ValueId> {
         const ValueId condition =
             b.Op("Less", {b.Constant({2, 3, 4}), b.Constant({3, 1})});
         return {b.Op("Where", {condition, b.Parameter({3, 4}),
                                b.Parameter({2, 1, 1})})};
       }},
      {"Dropout",
       [](Builder& b) -> std::vector<ValueId> {
         return {b.Op("Dropout", {b.Parameter({6, 7})},
                      {{"ratio", 0.4}, {"salt", int64_t{5}}})};
       }},
  };
}

std::vector<Case> ShapeCases() {
  const auto two_parts = [](Builder& b) -> std::vector<ValueId> {
    const std::vector<ValueId> parts =
        b.Ops("Split", {b.Parameter({2, 7})},
              {{"axis", int64_t{1}}, {"sizes", Ints{3, 4}}});
    return {parts[0], parts[1]};
  };
  const auto one_part = [](Builder& b) -> std::vector<ValueId> {
    return {b.Ops("Split", {b.Parameter({7, 2})},
                  {{"axis", int64_t{0}}, {"sizes", Ints{2, 3, 2}}})[1]};
  };
  return {
      Unary("ReduceSum", -1, 1, {{"axes", Ints{0}}, {"keepdims", int64_t{0}}}),
      Unary("ReduceSum", -1, 1, {{"axes", Ints{1}}}, " keeps dimensions"),
      Unary("ReduceSum", -1, 1, {}, " of all"),
      Unary("ReduceMean", -1, 1, {{"axes", Ints{1}}, {"keepdims", int64_t{0}}}),
      Unary("ReduceMean", -1, 1, {{"axes", Ints{0, 1}}}, " keeps dimensions"),
      Unary("Reshape", -1, 1, {{"shape", Ints{2, 6}}}),
      Unary("Transpose", -1, 1, {{"perm", Ints{1, 0}}}),
      {"Transpose 4d",
       [](Builder& b) -> std::vector<ValueId> {
         return {b.Op("Transpose", {b.Parameter({2, 3, 4, 2})},
                      {{"perm", Ints{2, 0, 3, 1}}})};
       }},
      {"Concat",
       [](Builder& b) -> std::vector<ValueId> {
         return {b.Op("Concat",
                      {b.Parameter({2, 1, 3}), b.Parameter({2, 2, 3}),
                       b.Parameter({2, 3, 3})},
                      {{"axis", int64_t{1}}})};
       }},
      {"Concat of a value with itself",
       [](Builder& b) -> std::vector<ValueId> {
         const ValueId x = b.Parameter({2, 3});
         return {b.Op("Concat", {x, x}, {{"axis", int64_t{0}}})};
       }},
      {"Split", two_parts},
      {"Split with unread parts", one_part},
      {"Slice with steps",
       [](Builder& b) -> std::vector<ValueId> {
         return {b.Op("Slice", {b.Parameter({5, 3, 7})},
                      {{"starts", Ints{1, 0}},
                       {"ends", Ints{4, 6}},
                       {"axes", Ints{0, 2}},
                       {"steps", Ints{1, 2}}})};
       }},
      {"SliceGrad with steps",
       [](Builder& b) -> std::vector<ValueId> {
         return {b.Op("SliceGrad", {b.Parameter({3, 3, 3})},
                      {{"starts", Ints{1, 0}},
                       {"ends", Ints{4, 6}},
                       {"axes", Ints{0, 2}},
                       {"steps", Ints{1, 2}},
                       {"shape", Ints{5, 3, 7}}})};
       }},
      {"Expand",
       [](Builder& b) -> std::vector<ValueId> {
         return {
             b.Op("Expand", {b.Parameter({3, 1})}, {{"shape", Ints{2, 3, 4}}})};
       }},
      {"Gather rows with repeats",
       [](Builder& b) -> std::vector<ValueId> {
         return {b.Op("Gather", {b.Parameter({5, 3}), b.Indices({2, 6}, 4)},
                      {{"axis", int64_t{0}}})};
       }},
      {"Gather columns",
       [](Builder& b) -> std::vector<ValueId> {
         return {b.Op("Gather", {b.Parameter({2, 5, 3}), b.Indices({4}, 5)},
                      {{"axis", int64_t{1}}})};
       }},
  };
}

std::vector<Case> ProductCases() {
  const int64_t on = 1;
  return {
      Product("", {3, 4}, {4, 5}, {}),
      Product(" trans_a", {4, 3}, {4, 5}, {{"trans_a", on}}),
      Product(" trans_b", {3, 4}, {5, 4}, {{"trans_b", on}}),
      Product(" both", {4, 3}, {5, 4}, {{"trans_a", on}, {"trans_b", on}}),
      Product(" batched", {2, 2, 3, 4}, {2, 2, 4, 5}, {}),
      Product(" batched trans_b", {2, 2, 3, 4}, {2, 2, 5, 4},
              {{"trans_b", on}}),
      Product(" batched trans_a", {2, 4, 3}, {2, 4, 5}, {{"trans_a", on}}),
      Product(" shared right side", {2, 3, 4}, {4, 5}, {}),
      Product(" shared right side trans_b", {2, 3, 4}, {5, 4},
              {{"trans_b", on}}),
      Product(" shared left side", {3, 4}, {2, 4, 5}, {}),
      Product(" broadcast batches", {2, 1, 3, 4}, {3, 4, 2}, {}),
      Product(" vector left", {4}, {4, 5}, {}),
      Product(" vector right", {3, 4}, {4}, {}),
      Product(" two vectors", {4}, {4}, {}),
      Product("", {3, 4}, {4, 5}, {{"alpha", 0.5}}, "Gemm"),
      Product(" transA", {4, 3}, {4, 5}, {{"transA", on}}, "Gemm"),
      Product(" both", {4, 3}, {5, 4}, {{"transA", on}, {"transB", on}},
              "Gemm"),
      {"Gemm with bias",
       [](Builder& b) -> std::vector<ValueId> {
         return {
             b.Op("Gemm",
                  {b.Parameter({3, 4}), b.Parameter({5, 4}), b.Parameter({5})},
                  {{"transB", int64_t{1}}, {"beta", 0.5}})};
       }},
      Convolution("", {2, 3, 5, 5}, {4, 3, 3, 3}, false, {1, 1}, {1, 1, 1, 1},
                  {1, 1}, 1),
      Convolution(" bias, stride 2", {2, 3, 6, 5}, {4, 3, 3, 3}, true, {2, 2},
                  {1, 1, 1, 1}, {1, 1}, 1),
      Convolution(" groups", {1, 4, 4, 4}, {6, 2, 3, 3}, true, {1, 1},
                  {0, 0, 0, 0}, {1, 1}, 2),
      Convolution(" dilated, uneven pads", {1, 2, 7, 6}, {2, 2, 3, 2}, false,
                  {1, 2}, {2, 0, 1, 1}, {2, 1}, 1),
      Convolution(" 1d", {2, 3, 8}, {4, 3, 3}, true, {1}, {1, 1}, {1}, 1),
      TransposedConvolution(" stride 2", {2, 3, 2, 3}, {3, 2, 2, 2},
                            {2, 2, 5, 6}, {2, 2}, {0, 0, 0, 0}, {1, 1}, 1),
      TransposedConvolution(" groups, pads", {1, 4, 3, 3}, {4, 1, 3, 3},
                            {1, 2, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 2),
  };
}

std::vector<Case> NormalizationAndPoolingCases() {
  const Attributes pool = {{"kernel_shape", Ints{3, 3}},
                           {"strides", Ints{2, 2}},
                           {"pads", Ints{1, 1, 1, 1}},
                           {"ceil_mode", int64_t{0}}};
  const auto average = [pool](int64_t count_include_pad) {
    return [=](Builder& b) -> std::vector<ValueId> {
      Attributes attributes = pool;
      attributes.Set("count_include_pad", count_include_pad);
      return {b.Op("AveragePool", {b.Parameter({1, 2, 5, 5})}, attributes)};
    };
  };
  return {
      {"BatchNormTraining",
       [](Builder& b) -> std::vector<ValueId> {
         return {b.Op(
             "BatchNormTraining",
             {b.Parameter({2, 3, 2, 3}), b.Parameter({3}), b.Parameter({3})},
             {{"epsilon", 1e-2}})};
       }},
      {"BatchNormTraining of a matrix",
       [](Builder& b) -> std::vector<ValueId> {
         return {b.Op("BatchNormTraining",
                      {b.Parameter({8, 3}), b.Parameter({3}), b.Parameter({3})},
                      {{"epsilon", 1e-2}})};
       }},
      {"BatchNormalization",
       [](Builder& b) -> std::vector<ValueId> {
         return {
             b.Op("BatchNormalization",
                  {b.Parameter({2, 3, 2, 3}), b.Parameter({3}),
                   b.Parameter({3}), b.Constant({3}), b.Constant({3}, 0.5, 2)},
                  {{"epsilon", 1e-5}})};
       }},
      {"LayerNormalization",
       [](Builder& b) -> std::vector<ValueId> {
         return {
             b.Op("LayerNormalization",
                  {b.Parameter({2, 3, 8}), b.Parameter({8}), b.Parameter({8})},
                  {{"axis", int64_t{2}}, {"epsilon", 1e-2}})};
       }},
      {"LayerNormalization without bias over two axes",
       [](Builder& b) -> std::vector<ValueId> {
         return {b.Op("LayerNormalization",
                      {b.Parameter({3, 2, 4}), b.Parameter({2, 4})},
                      {{"axis", int64_t{1}}, {"epsilon", 1e-2}})};
       }},
      Unary("Softmax", -2, 2, {{"axis", int64_t{1}}}),
      Unary("Softmax", -2, 2, {{"axis", int64_t{0}}}, " first axis"),
      Unary("LogSoftmax", -2, 2, {{"axis", int64_t{1}}}),
      {"Attention with a mask and dropout",
       [](Builder& b) -> std::vector<ValueId> {
         return {b.Ops("Attention",
                       {b.Parameter({2, 3, 4}), b.Parameter({2, 5, 4}),
                        b.Parameter({2, 5, 3}), b.Constant({2, 1, 5})},
                       {{"scale", 0.5}, {"ratio", 0.3}, {"salt", 7}})[0]};
       }},
      {"Attention causal, heads interleaved",
       [](Builder& b) -> std::vector<ValueId> {
         return {b.Ops("Attention",
                       {b.Parameter({2, 4, 2, 3}), b.Parameter({2, 4, 2, 3}),
                        b.Parameter({2, 4, 2, 3})},
                       {{"scale", 0.7}, {"causal", 1}, {"interleaved", 1}})[0]};
       }},
      {"MaxPool",
       [pool](Builder& b) -> std::vector<ValueId> {
         return {b.Op("MaxPool", {b.Parameter({1, 2, 5, 5})}, pool)};
       }},
      {"AveragePool", average(0)},
      {"AveragePool counting pads", average(1)},
      {"SoftmaxCrossEntropy",
       [](Builder& b) -> std::vector<ValueId> {
         return {b.Op("SoftmaxCrossEntropy",
                      {b.Parameter({5, 4}, -2, 2), b.Indices({5}, 4)},
                      {{"class_axis", int64_t{1}}})};
       }},
      {"SoftmaxCrossEntropy classes second of three",
       [](Builder& b) -> std::vector<ValueId> {
         return {b.Op("SoftmaxCrossEntropy",
                      {b.Parameter({2, 4, 3}, -2, 2), b.Indices({2, 3}, 4)},
                      {{"class_axis", int64_t{1}}})};
       }},
      {"MseLoss",
       [](Builder& b) -> std::vector<ValueId> {
         return {b.Op("MseLoss", {b.Parameter({3, 4}), b.Constant({3, 4})})};
       }},
  };
}

std::vector<Case> CompositionCases() {
  const auto attention = [](Builder& b) -> std::vector<ValueId> {
    const ValueId x = b.Parameter({2, 5, 6});
    const ValueId q = b.Op("MatMul", {x, b.Parameter({6, 4})});
    const ValueId k = b.Op("MatMul", {x, b.Parameter({6, 4})});
    const ValueId v = b.Op("MatMul", {x, b.Parameter({6, 6})});
    const ValueId score = b.Op("MatMul", {q, k}, {{"trans_b", int64_t{1}}});
    const ValueId masked = b.Op(
        "Where", {b.Op("Less", {b.Constant({5, 5}), b.Constant({})}), score,
                  b.graph.AddConstant("low", models::ScalarTensor(-3))});
    const ValueId weights = b.Op("Softmax", {masked}, {{"axis", int64_t{-1}}});
    return {b.Op("Add", {x, b.Op("MatMul", {weights, v})})};
  };
  const auto residual = [](Builder& b) -> std::vector<ValueId> {
    const ValueId x = b.Parameter({3, 2, 4, 4});
    const Attributes same = {{"kernel_shape", Ints{3, 3}},
                             {"strides", Ints{1, 1}},
                             {"pads", Ints{1, 1, 1, 1}},
                             {"dilations", Ints{1, 1}},
                             {"group", int64_t{1}}};
    const ValueId c = b.Op("Conv", {x, b.Parameter({2, 2, 3, 3})}, same);
    const ValueId n =
        b.Op("BatchNormTraining", {c, b.Parameter({2}), b.Parameter({2})},
             {{"epsilon", 1e-2}});
    const ValueId sum = b.Op("Add", {b.Op("Tanh", {n}), x});
    return {b.Op("ReduceMean", {sum}, {{"axes", Ints{2, 3}}})};
  };
  const auto tied = [](Builder& b) -> std::vector<ValueId> {
    const ValueId table = b.Parameter({7, 4});
    const ValueId x =
        b.Op("Gather", {table, b.Indices({3, 2}, 7)}, {{"axis", int64_t{0}}});
    const ValueId h = b.Op("Gelu", {x}, {{"approximate", std::string("none")}});
    return {b.Op("MatMul", {h, table}, {{"trans_b", int64_t{1}}})};
  };
  return {{"attention with a mask", attention},
          {"residual block", residual},
          {"tied embedding", tied}};
}

std::vector<Case> AllCases() {
  std::vector<Case> all;
  for (const auto& family : {PointwiseCases, ShapeCases, ProductCases,
                             NormalizationAndPoolingCases, CompositionCases}) {
    const std::vector<Case> cases = family();
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

class GradientRule : public testing::TestWithParam<Case> {};

TEST_P(GradientRule, AgreesWithFiniteDifferences) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    CheckCase(GetParam(), seed);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, GradientRule, testing::ValuesIn(AllCases()),
                         [](const testing::TestParamInfo<Case>& info) {
                           std::string name;
                           for (char c : info.param.name) {
                             name += std::isalnum(c) ? c : '_';
                           }
                           return name + "_" + std::to_string(info.index);
                         });

TEST(GradientRules, AllHaveACase) {
  std::set<std::string> tested;
  for (const Case& c : AllCases()) {
    tested.insert(c.name.substr(0, c.name.find(' ')));
  }
  for (const models::Operator* op : models::AllOperators()) {
    if (op->gradient == nullptr) continue;
    EXPECT_TRUE(tested.contains(std::string(op->name)))
        << op->name << " has a gradient rule and no case here";
  }
}

}  // namespace
}  // namespace loadline::executor
