// Tested through the passes that use it, in tests/passes/.
#include "passes/rewrite.h"

#include <algorithm>

#include "planner/base/check.h"

namespace loadline::passes {

using models::DType;
using models::Graph;
using models::kNoValue;
using models::Node;
using models::Value;
using models::ValueId;
using models::ValueKind;

std::optional<double> ScalarConstant(const Graph& graph, ValueId id) {
  if (id == kNoValue) return std::nullopt;
  const Value& value = graph.value(id);
  if (value.kind != ValueKind::kConstant || !value.initial.has_value() ||
      value.type.dtype != DType::kF32 || value.type.elements() != 1) {
    return std::nullopt;
  }
  return value.initial->as<float>()[0];
}

bool IsFloat(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kF16 ||
         dtype == DType::kBF16;
}

std::vector<ValueId> IdentityReplacement(const Graph& graph) {
  std::vector<ValueId> same(graph.values.size());
  for (size_t i = 0; i < same.size(); ++i) {
    same[i] = ValueId{static_cast<int32_t>(i)};
  }
  return same;
}

void ReplaceUses(Graph& graph, const std::vector<ValueId>& replacement) {
  LOADLINE_CHECK(replacement.size() == graph.values.size());
  const auto replace = [&](ValueId& id) {
    if (id == kNoValue) return;
    while (replacement[Index(id)] != id) id = replacement[Index(id)];
  };
  for (Node& node : graph.nodes) {
    for (ValueId& id : node.inputs) replace(id);
  }
  for (ValueId& id : graph.outputs) replace(id);
  for (auto& [state, next] : graph.updates) replace(next);
}

std::vector<bool> NamedByGraph(const Graph& graph) {
  std::vector<bool> named(graph.values.size(), false);
  for (ValueId id : graph.outputs) named[Index(id)] = true;
  for (const auto& [state, next] : graph.updates) {
    named[Index(state)] = true;
    named[Index(next)] = true;
  }
  return named;
}

std::vector<bool> NeededNodes(const Graph& graph, std::vector<bool>& needed) {
  const auto is_needed = [&](ValueId id) {
    return id != models::kNoValue && needed[Index(id)];
  };
  std::vector<bool> nodes(graph.nodes.size(), false);
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const models::Node& node = graph.nodes[i];
    nodes[i] = std::any_of(node.outputs.begin(), node.outputs.end(), is_needed);
    if (!nodes[i]) continue;
    for (ValueId id : node.inputs) {
      if (id != models::kNoValue) needed[Index(id)] = true;
    }
  }
  return nodes;
}

void KeepNodes(Graph& graph, const std::vector<bool>& keep) {
  std::vector<bool> erase = keep;
  erase.flip();
  models::EraseNodes(&graph, erase);
}

}  // namespace loadline::passes
