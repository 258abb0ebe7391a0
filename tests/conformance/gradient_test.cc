// Every gradient rule against finite differences, through AddGradients and the
// CPU's kernels. For outputs y of an operator and fixed random weights r, the
// number L = sum of r y is differentiated by both toward every element of every
// parameter.
//
// Parameters hold distinct numbers, each further than the difference's step
// from 0 and from every other: no kink of Relu, Abs or MaxPool lies between the
// two sides.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "models/graph.h"
#include "models/ops/operator.h"
#include "passes/add_gradients.h"
#include "tests/conformance/gradient_cases.h"
#include "tests/conformance/interpreter.h"

namespace loadline::executor {
namespace {

using models::Graph;
using models::ValueId;

constexpr float kStep = 1.0f / 128;
constexpr StepScalars kScalars{.learning_rate = 0, .step = 3, .seed = 7};

// Adds L = sum of r y to the graph, with random constants r.
ValueId WeightedSum(GradientGraph& b, const std::vector<ValueId>& outputs) {
  ValueId sum = models::kNoValue;
  for (ValueId y : outputs) {
    const ValueId r = b.Constant(b.graph.value(y).type.dims);
    const ValueId part =
        b.Op("ReduceSum", {b.Op("Mul", {y, r})}, {{"keepdims", int64_t{0}}});
    sum = sum == models::kNoValue ? part : b.Op("Add", {sum, part});
  }
  return sum;
}

// L computed from the outputs' contents in double precision.
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

void CheckCase(const GradientCase& c, uint64_t seed) {
  GradientGraph b(seed);
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

class GradientRule : public testing::TestWithParam<GradientCase> {};

TEST_P(GradientRule, AgreesWithFiniteDifferences) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    CheckCase(GetParam(), seed);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, GradientRule,
                         testing::ValuesIn(AllGradientCases()),
                         [](const testing::TestParamInfo<GradientCase>& info) {
                           std::string name;
                           for (char c : info.param.name) {
                             name += std::isalnum(c) ? c : '_';
                           }
                           return name + "_" + std::to_string(info.index);
                         });

TEST(GradientRules, AllHaveACase) {
  std::set<std::string> tested;
  for (const GradientCase& c : AllGradientCases()) {
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
