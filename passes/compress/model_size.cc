// A channel's cost is the difference between two models whose shapes differ by
// that channel; only the values and nodes of its group are looked at. Tested in
// tests/passes/compress/model_size_test.cc.
#include "passes/compress/model_size.h"

#include <algorithm>
#include <map>
#include <vector>

#include "models/ops/operator.h"
#include "passes/compress/separate_constants.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::Node;
using models::TensorType;
using models::ValueId;
using models::ValueKind;

bool IsView(const Node& node) {
  const models::Operator* op = models::FindOperator(node.op);
  return op != nullptr && op->view;
}

// Types by value where they differ from the graph's.
using Types = std::map<ValueId, TensorType>;

int64_t MacsOf(const Graph& graph, const Node& node, const Types& changed) {
  const models::Operator* op = models::FindOperator(node.op);
  if (op == nullptr || op->cost == nullptr) return 0;
  const auto type = [&](ValueId id) -> const TensorType& {
    const auto it = changed.find(id);
    return it == changed.end() ? graph.value(id).type : it->second;
  };
  std::vector<const TensorType*> inputs;
  for (ValueId id : node.inputs) {
    inputs.push_back(id == models::kNoValue ? nullptr : &type(id));
  }
  std::vector<TensorType> outputs;
  for (ValueId id : node.outputs) outputs.push_back(type(id));
  const models::OperatorCost cost = op->cost(node, inputs, outputs);
  return cost.matmul_like ? static_cast<int64_t>(cost.flops / 2) : 0;
}

void AddValue(const models::Value& value, const TensorType& type, int64_t sign,
              ModelSize* size) {
  if (value.kind == ValueKind::kParameter) {
    size->parameters += sign * type.elements();
    size->parameter_bytes += sign * type.bytes();
  }
}

}  // namespace

ModelSize SizeOfModel(const Graph& model) {
  ModelSize size;
  for (const models::Value& value : model.values) {
    AddValue(value, value.type, 1, &size);
  }
  for (const Node& node : model.nodes) {
    size.macs += MacsOf(model, node, {});
    if (IsView(node)) continue;
    for (ValueId id : node.outputs) {
      size.activation_bytes += model.value(id).type.bytes();
    }
  }
  return size;
}

ModelSize SizeOfChannel(const Graph& model, const PruneGroup& group) {
  const Graph graph = SeparateConstants(model);
  Types smaller;
  for (const auto* members : {&group.members, &group.activations}) {
    for (const PruneMember& member : *members) {
      const auto [it, added] =
          smaller.try_emplace(member.value, graph.value(member.value).type);
      it->second.dims[static_cast<size_t>(member.axis)] -=
          std::count(member.channel_of.begin(), member.channel_of.end(), 0);
    }
  }
  ModelSize size;
  size.channels = 1;
  for (const auto& [id, type] : smaller) {
    AddValue(graph.value(id), graph.value(id).type, 1, &size);
    AddValue(graph.value(id), type, -1, &size);
  }
  for (models::NodeId n : group.nodes) {
    const Node& node = graph.node(n);
    size.macs += MacsOf(graph, node, {}) - MacsOf(graph, node, smaller);
    if (IsView(node)) continue;
    for (ValueId id : node.outputs) {
      const auto it = smaller.find(id);
      if (it == smaller.end()) continue;
      size.activation_bytes +=
          graph.value(id).type.bytes() - it->second.bytes();
    }
  }
  return size;
}

}  // namespace loadline::passes
