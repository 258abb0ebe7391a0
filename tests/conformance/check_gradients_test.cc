// The command's check of gradient rules (executor/reference/check_gradients.h)
// over every case of the operator table, at its attributes and shapes, and
// empty and single axes among them.
#include "executor/reference/check_gradients.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "models/ops/operator.h"
#include "tests/conformance/operator_cases.h"

namespace loadline::conformance {
namespace {

using models::DType;
using models::ValueId;

// Inputs that no rule differentiates: counts of targets, weights of classes and
// masks, which no parameter leads to in a training step.
bool IsGiven(const OperatorCase& c, size_t input) {
  return (c.op == "SoftmaxCrossEntropy" && input >= 2) ||
         (c.op == "Attention" && input == 3);
}

// The case's node, with parameters for its f32 inputs.
absl::StatusOr<models::Graph> StepOf(const OperatorCase& c) {
  models::Graph graph;
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const auto& input = c.inputs[i];
    if (!input.has_value()) {
      inputs.push_back(models::kNoValue);
    } else if (input->type.dtype == DType::kF32 && !IsGiven(c, i)) {
      inputs.push_back(
          graph.AddParameter("p", models::ZeroTensor(input->type)));
    } else {
      inputs.push_back(graph.AddInput("x", input->type));
    }
  }
  const auto outputs = graph.AddNode(c.op, c.op, inputs, c.attributes);
  if (!outputs.ok()) return outputs.status();
  graph.outputs = {(*outputs)[0]};
  return graph;
}

TEST(CheckGradients, AcceptsEveryRuleAtEveryCase) {
  std::set<std::string> checked;
  for (const OperatorCase& c : OperatorCases()) {
    const models::Operator* op = models::FindOperator(c.op);
    ASSERT_NE(op, nullptr) << c.op;
    if (op->gradient == nullptr || op->view) continue;
    const auto step = StepOf(c);
    ASSERT_TRUE(step.ok()) << c.Name() << ": " << step.status();
    for (const auto& found :
         reference::CheckGradients(*step, {.most_flops = 4e4})) {
      EXPECT_FALSE(found.Wrong()) << c.Name() << ", " << found.worst;
      // Rows that are written twice, and steps, have no slope.
      if (c.op == "FakeQuantize" || !c.smooth) continue;
      EXPECT_EQ(found.skipped, 0) << c.Name() << ": " << found.why;
      if (found.checked > 0) checked.insert(c.op);
    }
  }
  for (const models::Operator* op : models::AllOperators()) {
    if (op->gradient == nullptr || op->view || op->name == "FakeQuantize") {
      continue;
    }
    EXPECT_EQ(checked.count(std::string(op->name)), 1u) << op->name;
  }
}

}  // namespace
}  // namespace loadline::conformance
