// Copies share their bytes, so separating costs no memory. Tested in
// tests/passes/compress/prune_graph_test.cc.
#include "passes/compress/separate_constants.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::Node;
using models::Value;
using models::ValueId;

}  // namespace

Graph SeparateConstants(const Graph& model) {
  Graph graph = model;
  std::set<std::string> names;
  for (const Value& value : graph.values) names.insert(value.name);
  std::vector<bool> taken(graph.values.size(), false);
  for (ValueId id : graph.outputs) taken[Index(id)] = true;
  for (Node& node : graph.nodes) {
    for (ValueId& id : node.inputs) {
      if (id == models::kNoValue) continue;
      const Value& value = graph.value(id);
      if (value.kind != models::ValueKind::kConstant ||
          value.type.elements() <= 1) {
        continue;
      }
      if (!taken[Index(id)]) {
        taken[Index(id)] = true;
        continue;
      }
      Value copy = value;
      for (int k = 2; !names.insert(copy.name).second; ++k) {
        copy.name = absl::StrCat(value.name, "@", k);
      }
      id = ValueId(static_cast<int32_t>(graph.values.size()));
      graph.values.push_back(std::move(copy));
    }
  }
  return graph;
}

void JoinConstants(size_t count, Graph* graph) {
  std::multimap<std::string, ValueId> known;  // by type
  std::vector<ValueId> stands_for(graph->values.size());
  std::vector<Value> values;
  for (size_t v = 0; v < graph->values.size(); ++v) {
    Value& value = graph->values[v];
    stands_for[v] = ValueId(static_cast<int32_t>(values.size()));
    if (value.kind == models::ValueKind::kConstant) {
      const std::string type = value.type.ToString();
      bool joined = false;
      if (v >= count) {
        const auto [first, last] = known.equal_range(type);
        for (auto it = first; it != last && !joined; ++it) {
          const auto& contents = values[Index(it->second)].initial->data;
          if (contents != value.initial->data &&
              *contents != *value.initial->data) {
            continue;
          }
          stands_for[v] = it->second;
          joined = true;
        }
      }
      if (joined) continue;
      known.emplace(type, stands_for[v]);
    }
    values.push_back(std::move(value));
  }
  graph->values = std::move(values);
  for (Node& node : graph->nodes) {
    for (ValueId& id : node.inputs) {
      if (id != models::kNoValue) id = stands_for[Index(id)];
    }
  }
}

}  // namespace loadline::passes
