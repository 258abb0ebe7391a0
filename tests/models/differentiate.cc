// Used by gradient_test.cc and gradient_products_test.cc.
#include "tests/models/differentiate.h"

#include <gtest/gtest.h>

#include "models/ops/operator.h"

namespace loadline::models {

std::vector<std::string> Differentiated::Ops() const {
  std::vector<std::string> ops;
  for (size_t i = 1; i < graph.nodes.size(); ++i) {
    ops.push_back(graph.nodes[i].op);
  }
  return ops;
}

std::vector<std::string> Differentiated::Saved() const {
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

Differentiated Differentiate(const char* op,
                             const std::vector<TensorType>& inputs,
                             DifferentiateOptions options) {
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

}  // namespace loadline::models
