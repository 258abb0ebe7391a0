// The graph builder that gradient cases share, and the cases of several
// operators together. Each family's own cases are in gradient_cases_*.cc.
#include "tests/conformance/gradient_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "models/ops/operator.h"

namespace loadline::executor {

using models::Attributes;
using models::DType;
using models::Ints;
using models::TensorType;
using models::ValueId;

models::Tensor GradientGraph::Numbers(Ints dims, float low, float high) {
  const TensorType type{DType::kF32, std::move(dims)};
  std::vector<float> numbers(static_cast<size_t>(type.elements()));
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = low + (high - low) * (i + 0.5f) / numbers.size();
  }
  std::shuffle(numbers.begin(), numbers.end(), random_);
  return models::MakeTensor(type, numbers.data());
}

ValueId GradientGraph::Parameter(Ints dims, float low, float high) {
  return graph.AddParameter("p", Numbers(std::move(dims), low, high));
}

ValueId GradientGraph::Constant(Ints dims, float low, float high) {
  return graph.AddConstant("c", Numbers(std::move(dims), low, high));
}

ValueId GradientGraph::Indices(Ints dims, int64_t limit) {
  const TensorType type{DType::kI64, std::move(dims)};
  std::vector<int64_t> numbers(static_cast<size_t>(type.elements()));
  for (int64_t& n : numbers) n = static_cast<int64_t>(random_() % limit);
  return graph.AddConstant("i", models::MakeTensor(type, numbers.data()));
}

std::vector<ValueId> GradientGraph::Ops(absl::string_view op,
                                        std::vector<ValueId> inputs,
                                        Attributes attributes) {
  absl::StatusOr<std::vector<ValueId>> outputs =
      graph.AddNode(op, "n", std::move(inputs), std::move(attributes));
  EXPECT_TRUE(outputs.ok()) << op << ": " << outputs.status();
  return outputs.ok() ? *outputs : std::vector<ValueId>(8, ValueId{0});
}

ValueId GradientGraph::Op(absl::string_view op, std::vector<ValueId> inputs,
                          Attributes attributes) {
  return Ops(op, std::move(inputs), std::move(attributes))[0];
}

void PrintTo(const GradientCase& c, std::ostream* out) { *out << c.name; }

GradientCase UnaryCase(const std::string& op, float low, float high,
                       Attributes attributes, const std::string& special) {
  return {op + special, [=](GradientGraph& b) -> std::vector<ValueId> {
            return {b.Op(op, {b.Parameter({3, 4}, low, high)}, attributes)};
          }};
}

std::vector<GradientCase> CompositionGradientCases() {
  const auto attention = [](GradientGraph& b) -> std::vector<ValueId> {
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
  const auto residual = [](GradientGraph& b) -> std::vector<ValueId> {
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
  const auto tied = [](GradientGraph& b) -> std::vector<ValueId> {
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

std::vector<GradientCase> AllGradientCases() {
  std::vector<GradientCase> all;
  for (const auto& family :
       {PointwiseGradientCases, ShapeGradientCases, ProductGradientCases,
        NormalizationAndPoolingGradientCases, QuantizeGradientCases,
        CompositionGradientCases, ImportedGradientCases}) {
    const std::vector<GradientCase> cases = family();
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

}  // namespace loadline::executor
