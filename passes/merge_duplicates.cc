// Value numbering: nodes are visited in order, with inputs already replaced by
// the first equal value, so equal keys mean equal results. A shared value may
// live longer; the planner can recompute it to save its bytes. Tested in
// tests/passes/simplify_test.cc.
#include "passes/merge_duplicates.h"

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "models/ops/operator.h"
#include "passes/rewrite.h"

namespace loadline::passes {
namespace {

using models::Attribute;
using models::Graph;
using models::Node;
using models::Value;
using models::ValueId;
using models::ValueKind;

// Replaces every constant by the first one with its type and contents.
void MergeConstants(const Graph& graph, std::vector<ValueId>& replacement) {
  const std::vector<bool> named = NamedByGraph(graph);
  std::map<std::pair<std::string, absl::string_view>, ValueId> first;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const Value& value = graph.values[i];
    if (value.kind != ValueKind::kConstant || !value.initial.has_value() ||
        named[i]) {
      continue;
    }
    const std::vector<std::byte>& bytes = *value.initial->data;
    const absl::string_view content(reinterpret_cast<const char*>(bytes.data()),
                                    bytes.size());
    const ValueId id{static_cast<int32_t>(i)};
    replacement[i] =
        first.try_emplace({value.type.ToString(), content}, id).first->second;
  }
}

}  // namespace

absl::Status MergeDuplicates(Graph& graph) {
  std::vector<ValueId> replacement = IdentityReplacement(graph);
  MergeConstants(graph, replacement);

  using Key = std::tuple<std::string, std::vector<ValueId>,
                         std::map<std::string, Attribute>>;
  std::map<Key, size_t> first;
  const std::vector<bool> named = NamedByGraph(graph);
  std::vector<bool> keep(graph.nodes.size(), true);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    std::vector<ValueId> inputs = node.inputs;
    for (ValueId& id : inputs) {
      if (id != models::kNoValue) id = replacement[Index(id)];
    }
    const models::Operator* op = models::FindOperator(node.op);
    if (op == nullptr || !op->recompute) continue;
    const auto [entry, is_new] = first.try_emplace(
        Key{node.op, std::move(inputs), node.attributes.map()}, i);
    if (is_new) continue;
    bool has_name = false;
    for (ValueId id : node.outputs) has_name = has_name || named[Index(id)];
    if (has_name) continue;
    keep[i] = false;
    const Node& original = graph.nodes[entry->second];
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      replacement[Index(node.outputs[o])] = original.outputs[o];
    }
  }
  ReplaceUses(graph, replacement);
  KeepNodes(graph, keep);
  return absl::OkStatus();
}

}  // namespace loadline::passes
