// Curves (models/ops/curves.h): values and slopes of torch 2.15 in double, at
// kinks and where written-out formulas overflow; imported from ONNX, with the
// gradients that training computes.
#include "models/ops/curves.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/ops/operator.h"
#include "tests/conformance/harness.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::conformance {
namespace {

using models::DType;
using models::Graph;
using models::ValueId;

const std::vector<double> kPoints = {-200, -95, -20, -6, -3, -1.5, -0.25, 0,
                                     0.3,  1,   3,   6,  20, 95,   200};

struct Curve {
  std::string op;
  models::Attributes attributes;
  std::vector<double> values;  // at kPoints
  std::vector<double> slopes;
};

const std::vector<Curve>& PyTorchCurves() {
  static const auto& curves = *new std::vector<Curve>{
      {"Elu",
       {{"alpha", 1.5}},
       {-1.5, -1.5, -1.5, -1.4962819, -1.4253194, -1.1653048, -0.33179883, 0,
        0.3, 1, 3, 6, 20, 95, 200},
       {0, 0, 3.0917304e-09, 0.0037181283, 0.074680603, 0.33469524, 1.1682012,
        1.5, 1, 1, 1, 1, 1, 1, 1}},
      {"Selu",
       {},
       {-1.7580993, -1.7580993, -1.7580993, -1.7537414, -1.6705687, -1.3658144,
        -0.3888902, 0, 0.3152103, 1.050701, 3.152103, 6.3042059, 21.01402,
        99.816594, 210.1402},
       {0, 0, 3.6237128e-09, 0.0043578926, 0.087530612, 0.39228499, 1.3692091,
        1.7580993, 1.050701, 1.050701, 1.050701, 1.050701, 1.050701, 1.050701,
        1.050701}},
      {"Celu",
       {{"alpha", 2.0}},
       {-2, -2, -1.9999092, -1.9004259, -1.5537397, -1.0552669, -0.23500619, 0,
        0.3, 1, 3, 6, 20, 95, 200},
       {0, 2.3496983e-21, 4.539993e-05, 0.049787068, 0.22313016, 0.47236655,
        0.8824969, 1, 1, 1, 1, 1, 1, 1, 1}},
      {"Softplus",
       {},
       {0, 0, 2.0611536e-09, 0.0024756851, 0.048587352, 0.20141328, 0.57593942,
        0.69314718, 0.85435524, 1.3132617, 3.0485874, 6.0024757, 20, 95, 200},
       {0, 0, 2.0611536e-09, 0.0024726232, 0.047425873, 0.18242552, 0.4378235,
        0.5, 0.57444252, 0.73105858, 0.95257413, 0.99752738, 1, 1, 1}},
      {"Mish",
       {},
       {0, 0, -4.1223072e-08, -0.01485408, -0.14564746, -0.29809974,
        -0.12992696, 0, 0.20800137, 0.86509839, 2.986535, 5.9999266, 20, 95,
        200},
       {0, 0, -3.9161919e-08, -0.012359968, -0.093393115, -0.064097816,
        0.4398156, 0.6, 0.7828273, 1.0490362, 1.0211069, 1.0001341, 1, 1, 1}},
      {"LeakyRelu",
       {{"alpha", 0.1}},
       {-20, -9.5, -2, -0.6, -0.3, -0.15, -0.025, 0, 0.3, 1, 3, 6, 20, 95, 200},
       {0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 1, 1, 1, 1, 1, 1, 1}},
      {"HardSigmoid",
       {{"alpha", 1.0 / 6}, {"beta", 0.5}},
       {0, 0, 0, 0, 0, 0.25, 0.45833333, 0.5, 0.55, 0.66666667, 1, 1, 1, 1, 1},
       {0, 0, 0, 0, 0, 0.16666667, 0.16666667, 0.16666667, 0.16666667,
        0.16666667, 0, 0, 0, 0, 0}},
      {"HardSwish",
       {},
       {0, 0, 0, 0, 0, -0.375, -0.11458333, 0, 0.165, 0.66666667, 3, 6, 20, 95,
        200},
       {0, 0, 0, 0, 0, 0, 0.41666667, 0.5, 0.6, 0.83333333, 1, 1, 1, 1, 1}},
      {"Softsign",
       {},
       {-0.99502488, -0.98958333, -0.95238095, -0.85714286, -0.75, -0.6, -0.2,
        0, 0.23076923, 0.5, 0.75, 0.85714286, 0.95238095, 0.98958333,
        0.99502488},
       {2.4751863e-05, 0.00010850694, 0.0022675737, 0.020408163, 0.0625, 0.16,
        0.64, 1, 0.59171598, 0.25, 0.0625, 0.020408163, 0.0022675737,
        0.00010850694, 2.4751863e-05}},
      {"ThresholdedRelu",
       {{"alpha", 1.0}},
       {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 6, 20, 95, 200},
       {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1}},
      {"Clip",
       {{"min", -1.5}, {"max", 3.0}},
       {-1.5, -1.5, -1.5, -1.5, -1.5, -1.5, -0.25, 0, 0.3, 1, 3, 3, 3, 3, 3},
       {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0}},
      {"Sin",
       {},
       {0.8732973, -0.68326171, -0.91294525, 0.2794155, -0.14112001,
        -0.99749499, -0.24740396, 0, 0.29552021, 0.84147098, 0.14112001,
        -0.2794155, 0.91294525, 0.68326171, -0.8732973},
       {0.48718768, 0.73017356, 0.40808206, 0.96017029, -0.9899925, 0.070737202,
        0.96891242, 1, 0.95533649, 0.54030231, -0.9899925, 0.96017029,
        0.40808206, 0.73017356, 0.48718768}},
      {"Cos",
       {},
       {0.48718768, 0.73017356, 0.40808206, 0.96017029, -0.9899925, 0.070737202,
        0.96891242, 1, 0.95533649, 0.54030231, -0.9899925, 0.96017029,
        0.40808206, 0.73017356, 0.48718768},
       {-0.8732973, 0.68326171, 0.91294525, -0.2794155, 0.14112001, 0.99749499,
        0.24740396, 0, -0.29552021, -0.84147098, -0.14112001, 0.2794155,
        -0.91294525, -0.68326171, 0.8732973}},
  };
  return curves;
}

// Outputs of one node on f32 inputs of one length.
std::vector<double> RunNode(const std::string& op,
                            const models::Attributes& attributes,
                            const std::vector<std::vector<double>>& inputs) {
  Graph graph;
  std::vector<ValueId> ids;
  std::vector<Array> given;
  const models::TensorType type{DType::kF32,
                                {static_cast<int64_t>(inputs[0].size())}};
  for (const std::vector<double>& values : inputs) {
    ids.push_back(graph.AddInput(absl::StrCat("x", ids.size()), type));
    given.push_back({type, values});
  }
  models::Attributes all_attributes = attributes;
  if (const models::CurveFacts* curve = models::FindCurve(op)) {
    for (const models::CurveAttribute& a : curve->attributes) {
      if (!a.name.empty() && !attributes.Has(a.name)) {
        all_attributes.Set(a.name, a.fallback);
      }
    }
  }
  const auto made = graph.AddNode(op, "n", ids, all_attributes);
  EXPECT_TRUE(made.ok()) << made.status();
  const auto all = RunGraph(graph, given);
  EXPECT_TRUE(all.ok()) << all.status();
  return made.ok() && all.ok() ? (*all)[models::Index((*made)[0])].values
                               : std::vector<double>(inputs[0].size());
}

void ExpectNear(const std::vector<double>& got, const std::vector<double>& want,
                const std::vector<double>& at) {
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], 4e-6 * std::fabs(want[i]) + 1e-37)
        << "at " << at[i];
  }
}

TEST(Curves, AgreeWithPyTorchAtKinksAndFarOut) {
  for (const Curve& curve : PyTorchCurves()) {
    SCOPED_TRACE(curve.op);
    ExpectNear(RunNode(curve.op, curve.attributes, {kPoints}), curve.values,
               kPoints);
    const std::vector<double> ones(kPoints.size(), 1);
    ExpectNear(RunNode(std::string(models::FindCurve(curve.op)->gradient),
                       curve.attributes, {ones, kPoints}),
               curve.slopes, kPoints);
  }
}

TEST(Curves, AgreeWithTheirKnownPoints) {
  std::set<std::string> known;
  for (const Curve& curve : PyTorchCurves()) known.insert(curve.op);
  models::ForEachCurve(models::Curves(), [&known](auto curve) {
    const models::CurveFacts& facts = decltype(curve)::kFacts;
    const std::string op(facts.name);
    SCOPED_TRACE(op);
    if (known.count(op) > 0) return;
    ASSERT_NE(facts.known[0].x, facts.known[1].x) << "has no known points";
    for (const models::CurvePoint& point : facts.known) {
      ExpectNear(RunNode(op, {}, {{point.x}}), {point.value}, {point.x});
      ExpectNear(RunNode(std::string(facts.gradient), {}, {{1}, {point.x}}),
                 {point.slope}, {point.x});
    }
  });
}

TEST(Curves, KeepNan) {
  const std::vector<double> nan = {std::numeric_limits<double>::quiet_NaN()};
  models::ForEachCurve(models::Curves(), [&nan](auto curve) {
    const std::string op(decltype(curve)::kFacts.name);
    EXPECT_TRUE(std::isnan(RunNode(op, {}, {nan})[0])) << op;
  });
}

TEST(MaxAndMin, KeepNanAndHalveTies) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> a = {nan, 1, 2}, b = {1, nan, 3};
  for (const char* op : {"Max", "Min"}) {
    const std::vector<double> y = RunNode(op, {}, {a, b});
    EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1])) << op;
    EXPECT_EQ(y[2], std::string(op) == "Max" ? 3 : 2);
  }
}

// The gradient of the sum of a model's output along its input x, after an edit
// of the imported graph.
std::vector<double> InputGradient(
    const std::string& body, const std::vector<double>& x,
    const std::function<void(Graph&)>& edit = [](Graph&) {}) {
  auto imported = models::ImportText(body);
  EXPECT_TRUE(imported.ok()) << imported.status();
  if (!imported.ok()) return std::vector<double>(x.size());
  Graph graph = std::move(imported->graph);
  edit(graph);
  std::vector<ValueId> gradient(graph.values.size(), models::kNoValue);
  const ValueId y = graph.outputs[0];
  const models::TensorType type = graph.value(y).type;
  std::vector<Array> given = {{graph.value(graph.inputs[0]).type, x}};
  given.push_back({type, std::vector<double>(type.elements(), 1)});
  gradient[models::Index(y)] = graph.AddInput("dy", type);
  const size_t forward = graph.nodes.size();
  for (size_t i = forward; i-- > 0;) {
    const models::NodeId id{static_cast<int32_t>(i)};
    const models::Node node = graph.node(id);
    const ValueId dy = gradient[models::Index(node.outputs[0])];
    const auto* op = models::FindOperator(node.op);
    if (dy == models::kNoValue || op->gradient == nullptr) continue;
    std::vector<bool> wanted;
    for (ValueId input : node.inputs) {
      const models::Value& value = graph.value(input);
      wanted.push_back(value.kind != models::ValueKind::kConstant &&
                       value.type.dtype == DType::kF32);
    }
    models::GradientContext context(&graph, id, {dy}, wanted);
    EXPECT_TRUE(op->gradient(context).ok());
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const ValueId part = context.input_gradients()[k];
      if (!wanted[k] || part == models::kNoValue) continue;
      ValueId& sum = gradient[models::Index(node.inputs[k])];
      sum = sum == models::kNoValue
                ? part
                : (*graph.AddNode("Add", "sum", {sum, part}))[0];
    }
  }
  const auto all = RunGraph(graph, given);
  EXPECT_TRUE(all.ok()) << all.status();
  return (*all)[models::Index(gradient[models::Index(graph.inputs[0])])].values;
}

TEST(ReduceL2, HasNoGradientAtAZeroRow) {
  const std::vector<double> dx = InputGradient(
      "g (float[2,2] x) => (float[2] y) {"
      " axes = Constant<value_ints=[1]>() y = ReduceL2<keepdims=0>(x, axes) }",
      {0, 0, 3, 4});
  ExpectNear(dx, {0, 0, 0.6, 0.8}, {0, 0, 3, 4});
}

TEST(Max, GivesEachOperandHalfOfATiesGradient) {
  EXPECT_EQ(InputGradient("g (float[3] x) => (float[3] y) {"
                          " c = Constant<value_floats=[1.0,1.0,1.0]>()"
                          " y = Max(x, c) }",
                          {0, 1, 2}),
            (std::vector<double>{0, 0.5, 1}));
}

// As in torch.amax, and in torch.max over one dimension.
TEST(ReduceMax, SharesItsGradientAmongTiesOrGivesItToTheFirst) {
  const char* body =
      "g (float[2,4] x) => (float[2] y) {"
      " axes = Constant<value_ints=[1]>()"
      " y = ReduceMax<keepdims=0>(x, axes) }";
  const std::vector<double> x = {1, 3, 0, 3, 2, 2, 2, 2};
  EXPECT_EQ(InputGradient(body, x),
            (std::vector<double>{0, 0.5, 0, 0.5, 0.25, 0.25, 0.25, 0.25}));
  const auto first = [](Graph& graph) {
    for (models::Node& node : graph.nodes) {
      if (node.op == "ReduceMax") node.attributes.Set("first", int64_t{1});
    }
  };
  EXPECT_EQ(InputGradient(body, x, first),
            (std::vector<double>{0, 1, 0, 0, 1, 0, 0, 0}));
}

TEST(PRelu, TakesTheSlopeAtZero) {
  EXPECT_EQ(InputGradient("g (float[3] x) => (float[3] y) {"
                          " s = Constant<value_floats=[0.25,0.25,0.25]>()"
                          " y = PRelu(x, s) }",
                          {-1, 0, 2}),
            (std::vector<double>{0.25, 0.25, 1}));
}

// Where a written-out formula computes 0 times infinity.
TEST(CompositeActivations, HaveFiniteGradientsFarOut) {
  for (const char* call : {"Elu(x)", "Selu(x)", "Celu(x)", "Mish(x)",
                           "Softplus(x)", "HardSwish(x)", "Softsign(x)"}) {
    for (const double dx : InputGradient(
             absl::StrCat("g (float[2] x) => (float[2] y) { y = ", call, " }"),
             {200, -200})) {
      EXPECT_TRUE(std::isfinite(dx)) << call;
    }
  }
}

}  // namespace
}  // namespace loadline::conformance
