// The gradient rules against finite differences. The loss is a random
// combination of the operator's outputs. Its slope along each input element is
// measured on the double reference, and must equal what the nodes that the rule
// emits compute with their kernels.
#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "models/ops/operator.h"
#include "tests/conformance/harness.h"

namespace loadline::conformance {
namespace {

using models::DType;
using models::ValueId;

// Larger cases repeat the mathematics of small ones and take long.
constexpr size_t kMostElements = 300;

// Outputs that only serve the backward pass get no gradient: just output 0
// does, and all outputs of Split.
bool HasGradient(const std::string& op, size_t output) {
  return output == 0 || op == "Split";
}

double Loss(const CaseGraph& c, const std::vector<const Array*>& inputs,
            const std::vector<Array>& weights) {
  const std::vector<Array> outputs = ReferenceOutputs(c, inputs);
  double loss = 0;
  for (size_t o = 0; o < outputs.size(); ++o) {
    for (size_t i = 0; i < weights[o].values.size(); ++i) {
      loss += outputs[o].values[i] * weights[o].values[i];
    }
  }
  return loss;
}

// Slope along one element, by Richardson's extrapolation of two differences.
double Slope(const CaseGraph& c, size_t input, size_t element,
             const std::vector<Array>& weights) {
  const std::vector<const Array*> inputs = c.NodeInputs();
  Array moved = *inputs[input];
  std::vector<const Array*> with_moved = inputs;
  with_moved[input] = &moved;
  const double at = moved.values[element];
  const auto difference = [&](double h) {
    moved.values[element] = at + h;
    const double up = Loss(c, with_moved, weights);
    moved.values[element] = at - h;
    return (up - Loss(c, with_moved, weights)) / (2 * h);
  };
  const double h = 1e-4;
  return (4 * difference(h / 2) - difference(h)) / 3;
}

// Gradients computed by a case's backward nodes; null for inputs without one.
struct Gradients {
  std::vector<Array> weights;  // of each output
  std::vector<std::optional<Array>> of_input;
};

absl::StatusOr<Gradients> RunGradients(const CaseGraph& c, uint64_t seed) {
  models::Graph graph = c.graph;
  const models::Node node = c.the_node();
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Gradients made;
  std::vector<Array> given = c.inputs;
  std::vector<ValueId> output_gradients;
  for (size_t o = 0; o < node.outputs.size(); ++o) {
    const models::TensorType type = graph.value(node.outputs[o]).type;
    if (!HasGradient(node.op, o)) {
      output_gradients.push_back(models::kNoValue);
      made.weights.push_back({type, {}});
      continue;
    }
    Array dy{type, std::vector<double>(type.elements())};
    for (double& v : dy.values) v = uniform(random);
    output_gradients.push_back(graph.AddInput("dy", type));
    given.push_back(dy);
    made.weights.push_back(dy);
  }
  std::vector<bool> wanted;
  for (ValueId id : node.inputs) {
    wanted.push_back(id != models::kNoValue &&
                     graph.value(id).type.dtype == DType::kF32);
  }
  models::GradientContext context(&graph, c.node, output_gradients, wanted);
  const absl::Status status = models::FindOperator(node.op)->gradient(context);
  if (!status.ok()) return status;
  const absl::StatusOr<std::vector<Array>> values = RunGraph(graph, given);
  if (!values.ok()) return values.status();
  for (ValueId id : context.input_gradients()) {
    if (id == models::kNoValue) {
      made.of_input.push_back(std::nullopt);
    } else {
      made.of_input.push_back((*values)[models::Index(id)]);
    }
  }
  return made;
}

bool IsSmall(const CaseGraph& c) {
  size_t elements = 0;
  for (const Array& a : c.inputs) elements += a.values.size();
  for (ValueId id : c.the_node().outputs) {
    elements += c.graph.value(id).type.elements();
  }
  return elements <= kMostElements;
}

TEST(GradientRules, AgreeWithFiniteDifferences) {
  uint64_t seed = 1;
  std::map<std::string, int> checked;
  for (const OperatorCase& c : OperatorCases()) {
    ++seed;
    const models::Operator* op = models::FindOperator(c.op);
    ASSERT_NE(op, nullptr) << c.op;
    if (op->gradient == nullptr || !c.smooth) continue;
    SCOPED_TRACE(c.Name());
    const auto graph = MakeCaseGraph(c, seed);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const DType type =
        graph->graph.value(graph->the_node().outputs[0]).type.dtype;
    if (type != DType::kF32 || !IsSmall(*graph)) continue;
    const auto gradients = RunGradients(*graph, seed);
    ASSERT_TRUE(gradients.ok()) << gradients.status();
    const std::vector<const Array*> inputs = graph->NodeInputs();
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!gradients->of_input[i].has_value()) continue;
      const Array& got = *gradients->of_input[i];
      ASSERT_EQ(got.type, inputs[i]->type);
      ++checked[c.op];
      for (size_t e = 0; e < got.values.size(); ++e) {
        const double want = Slope(*graph, i, e, gradients->weights);
        ASSERT_NEAR(got.values[e], want, 1e-4 * (1 + std::fabs(want)))
            << "input " << i << ", element " << e;
      }
    }
  }
  for (const models::Operator* op : models::AllOperators()) {
    // Its steps are no slope: gradient_cases_quantize.cc has grids that are
    // too fine for differences to see them.
    if (op->name == "FakeQuantize") continue;
    if (op->gradient != nullptr && !op->view) {
      EXPECT_GT(checked[std::string(op->name)], 0) << op->name;
    }
  }
}

}  // namespace
}  // namespace loadline::conformance
