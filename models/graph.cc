// Builds a Graph value by value and node by node. Tested in
// tests/models/graph_test.cc.
#include "models/graph.h"

#include "absl/strings/str_cat.h"
#include "models/ops/operator.h"
#include "planner/base/check.h"
#include "planner/base/status_macros.h"

namespace loadline::models {

ValueId Graph::AddValue(absl::string_view value_name, TensorType type,
                        ValueKind kind, std::optional<Tensor> initial) {
  const ValueId id{static_cast<int32_t>(values.size())};
  Value added;
  added.name = value_names_.Unique(
      values.size(),
      [this](size_t i) -> const std::string& { return values[i].name; },
      value_name.empty() ? "value" : value_name);
  added.type = std::move(type);
  added.kind = kind;
  added.initial = std::move(initial);
  values.push_back(std::move(added));
  return id;
}

ValueId Graph::AddPersistent(absl::string_view value_name, Tensor initial,
                             ValueKind kind) {
  TensorType type = initial.type;
  return AddValue(value_name, std::move(type), kind, std::move(initial));
}

void Graph::Rename(ValueId id, std::string to) {
  value_names_.Rename(Index(id), value(id).name, to);
  value(id).name = std::move(to);
}

void Graph::Rename(NodeId id, std::string to) {
  Node& renamed = nodes[Index(id)];
  node_names_.Rename(Index(id), renamed.name, to);
  renamed.name = std::move(to);
}

ValueId Graph::AddInput(absl::string_view name, TensorType type) {
  const ValueId id =
      AddValue(name, std::move(type), ValueKind::kInput, std::nullopt);
  inputs.push_back(id);
  return id;
}

ValueId Graph::AddParameter(absl::string_view name, Tensor initial) {
  return AddPersistent(name, std::move(initial), ValueKind::kParameter);
}

ValueId Graph::AddState(absl::string_view name, Tensor initial) {
  return AddPersistent(name, std::move(initial), ValueKind::kState);
}

ValueId Graph::AddConstant(absl::string_view name, Tensor tensor) {
  return AddPersistent(name, std::move(tensor), ValueKind::kConstant);
}

absl::StatusOr<std::vector<ValueId>> Graph::AddNode(
    absl::string_view op, absl::string_view name,
    std::vector<ValueId> node_inputs, Attributes attributes, Phase phase) {
  Node node;
  node.name = std::string(name.empty() ? op : name);
  node.op = std::string(op);
  node.attributes = std::move(attributes);
  node.phase = phase;
  while (!node_inputs.empty() && node_inputs.back() == kNoValue) {
    node_inputs.pop_back();
  }
  node.inputs = std::move(node_inputs);
  std::vector<const TensorType*> types;
  for (ValueId id : node.inputs) {
    LOADLINE_CHECK(id == kNoValue || Index(id) < values.size());
    types.push_back(id == kNoValue ? nullptr : &value(id).type);
  }
  NormalizeAxes(&node, types);
  LOADLINE_ASSIGN_OR_RETURN(std::vector<TensorType> output_types,
                            InferTypes(node, types));
  node.name = node_names_.Unique(
      nodes.size(),
      [this](size_t i) -> const std::string& { return nodes[i].name; },
      node.name);
  for (size_t i = 0; i < output_types.size(); ++i) {
    const std::string output_name =
        i == 0 ? node.name : absl::StrCat(node.name, ".", i);
    node.outputs.push_back(AddValue(output_name, std::move(output_types[i]),
                                    ValueKind::kIntermediate, std::nullopt));
  }
  nodes.push_back(node);
  return std::move(node.outputs);
}

std::optional<ValueId> Graph::Find(absl::string_view value_name) const {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].name == value_name) return ValueId(static_cast<int32_t>(i));
  }
  return std::nullopt;
}

std::vector<ValueId> EraseNodes(Graph* graph, const std::vector<bool>& erase) {
  LOADLINE_CHECK(erase.size() == graph->nodes.size());
  // Kept: all values except intermediates that neither kept nodes, outputs nor
  // updates refer to.
  std::vector<bool> used(graph->values.size(), false);
  auto use = [&](ValueId id) {
    if (id != kNoValue) used[Index(id)] = true;
  };
  for (size_t v = 0; v < graph->values.size(); ++v) {
    used[v] = graph->values[v].kind != ValueKind::kIntermediate;
  }
  std::vector<Node> kept;
  for (size_t n = 0; n < graph->nodes.size(); ++n) {
    if (erase[n]) continue;
    for (ValueId id : graph->nodes[n].inputs) use(id);
    for (ValueId id : graph->nodes[n].outputs) use(id);
    kept.push_back(std::move(graph->nodes[n]));
  }
  for (ValueId id : graph->outputs) use(id);
  for (const auto& [old_version, new_version] : graph->updates) {
    use(old_version);
    use(new_version);
  }

  std::vector<ValueId> moved(graph->values.size(), kNoValue);
  std::vector<Value> values;
  for (size_t v = 0; v < graph->values.size(); ++v) {
    if (!used[v]) continue;
    moved[v] = ValueId(static_cast<int32_t>(values.size()));
    values.push_back(std::move(graph->values[v]));
  }
  auto move = [&](ValueId& id) {
    if (id != kNoValue) id = moved[Index(id)];
  };
  for (Node& node : kept) {
    for (ValueId& id : node.inputs) move(id);
    for (ValueId& id : node.outputs) move(id);
  }
  graph->values = std::move(values);
  graph->nodes = std::move(kept);
  for (ValueId& id : graph->inputs) move(id);
  for (ValueId& id : graph->outputs) move(id);
  for (auto& [old_version, new_version] : graph->updates) {
    move(old_version);
    move(new_version);
  }
  return moved;
}

GraphIndex IndexGraph(const Graph& graph) {
  GraphIndex index;
  index.producer.assign(graph.values.size(), -1);
  index.consumers.resize(graph.values.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const NodeId id{static_cast<int32_t>(n)};
    for (ValueId v : graph.nodes[n].outputs) {
      if (v != kNoValue) index.producer[Index(v)] = static_cast<int32_t>(n);
    }
    for (ValueId v : graph.nodes[n].inputs) {
      if (v == kNoValue) continue;
      std::vector<NodeId>& readers = index.consumers[Index(v)];
      // A node that reads a value twice is listed once.
      if (readers.empty() || readers.back() != id) readers.push_back(id);
    }
  }
  return index;
}

}  // namespace loadline::models
