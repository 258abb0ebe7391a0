#include "tests/planner/support/layered_problem.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "tests/planner/support/transformer_problem.h"

namespace loadline::planner {

Problem SmallTransformer(int layers) {
  TransformerShape shape;
  shape.layers = layers;
  shape.width = 256;
  shape.tokens = 512;
  shape.sequence = 128;
  shape.vocabulary = 1024;
  Problem problem = TransformerProblem(shape);
  problem.addresses = false;
  return problem;
}

Problem Chain(int layers) {
  Problem problem;
  problem.addresses = false;
  const auto add_value = [&](int64_t bytes, bool persistent) {
    Value value;
    value.file_id = static_cast<int64_t>(problem.values.size());
    value.bytes = bytes;
    value.persistent = persistent;
    problem.values.push_back(value);
    return ValueId{static_cast<int32_t>(problem.values.size()) - 1};
  };
  const auto add_node = [&](int64_t time_ns, std::vector<ValueId> inputs,
                            std::vector<ValueId> outputs) {
    Node node;
    node.file_id = static_cast<int64_t>(problem.nodes.size());
    node.time_ns = time_ns;
    node.inputs = std::move(inputs);
    node.outputs = std::move(outputs);
    problem.nodes.push_back(node);
  };
  std::vector<ValueId> weights, states = {add_value(100, false)}, inner;
  for (int i = 0; i < layers; ++i) {
    weights.push_back(add_value(10, true));
    states.push_back(add_value(100, false));
    inner.push_back(add_value(300, false));
    add_node(40, {weights[i], states[i]}, {inner[i]});
    add_node(5, {inner[i]}, {states[i + 1]});
  }
  ValueId gradient = states.back();
  for (int i = layers - 1; i >= 0; --i) {
    const ValueId next = add_value(100, false), part = add_value(10, false);
    add_node(80, {gradient, weights[i], states[i], inner[i]}, {next, part});
    const ValueId updated = add_value(10, true);
    add_node(1, {weights[i], part}, {updated});
    problem.nodes.back().recompute = false;
    problem.nodes.back().inplace = {{weights[i], updated}};
    gradient = next;
  }
  return problem;
}

Coarsened::Coarsened(const Problem& whole)
    : problem(whole),
      model(MakeSearchModel(problem, true, true)),
      layers(*FindLayers(problem, model.index)),
      shrunk(*CoarsenProblem(
          problem, layers,
          layers.count - (layers.alike_upper - layers.alike_lower) + 9)),
      few_model(MakeSearchModel(shrunk.problem, true, true)) {}

}  // namespace loadline::planner
