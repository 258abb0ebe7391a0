// Cost and key of a node. Tested in tests/models/cost_test.cc.
#include <array>

#include "absl/strings/str_cat.h"
#include "models/ops/check_types.h"
#include "models/ops/operator.h"
#include "planner/base/check.h"

namespace loadline::models {

OperatorCost CostOf(const Graph& graph, const Node& node) {
  const Operator* op = FindOperator(node.op);
  LOADLINE_CHECK(op != nullptr);
  if (op->view) return {};
  std::vector<const TensorType*> inputs;
  for (ValueId id : node.inputs) {
    inputs.push_back(id == kNoValue ? nullptr : &graph.value(id).type);
  }
  std::vector<TensorType> outputs;
  for (ValueId id : node.outputs) outputs.push_back(graph.value(id).type);
  if (op->cost != nullptr) return op->cost(node, inputs, outputs);
  OperatorCost cost;
  cost.bytes = BytesReadAndWritten(inputs, outputs);
  return cost;
}

std::string OperatorKey(const Graph& graph, const Node& node) {
  std::string key = absl::StrCat(node.op, "(");
  absl::string_view separator = "";
  for (ValueId id : node.inputs) {
    absl::StrAppend(&key, separator,
                    id == kNoValue ? "-" : graph.value(id).type.ToString());
    separator = ",";
  }
  absl::StrAppend(&key, ")->(");
  separator = "";
  for (ValueId id : node.outputs) {
    absl::StrAppend(&key, separator, graph.value(id).type.ToString());
    separator = ",";
  }
  absl::StrAppend(&key, ")");
  for (const auto& [name, value] : node.attributes.map()) {
    // These only select other random numbers, or another place.
    if (name == "salt" || name == "offset" || name == "start") continue;
    absl::StrAppend(&key, " ", name, "=", AttributeToText(value));
  }
  return key;
}

}  // namespace loadline::models
