#include "passes/cut_graph.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace loadline::passes {

using models::kNoValue;
using models::Node;
using models::TensorType;
using models::ValueId;

CutGraph::CutGraph(models::Graph& graph, int64_t parts,
                   models::BatchStatistics statistics)
    : graph_(graph), parts_(parts), statistics_(statistics) {
  for (const models::Value& value : graph.values) {
    values_.push_back({.whole = value.type,
                       .trained = value.kind == models::ValueKind::kParameter});
  }
  for (const Node& node : graph.nodes) names_.insert(node.name);
}

void CutGraph::Follow(ValueId id, TensorType whole, int64_t axis) {
  values_.resize(graph_.values.size());
  (*this)[id].axis = axis;
  (*this)[id].whole = std::move(whole);
}

bool CutGraph::AnyInputCut(const Node& node) const {
  return std::any_of(
      node.inputs.begin(), node.inputs.end(), [this](ValueId id) {
        return id != kNoValue && (*this)[id].axis != models::kWhole;
      });
}

bool CutGraph::ReadsTrained(const Node& node) const {
  return std::any_of(
      node.inputs.begin(), node.inputs.end(),
      [this](ValueId id) { return id != kNoValue && (*this)[id].trained; });
}

std::vector<const TensorType*> CutGraph::WholeInputs(const Node& node) const {
  std::vector<const TensorType*> types;
  for (ValueId id : node.inputs) {
    types.push_back(id == kNoValue ? nullptr : &(*this)[id].whole);
  }
  return types;
}

std::vector<TensorType> CutGraph::WholeOutputs(const Node& node) const {
  std::vector<TensorType> types;
  for (ValueId id : node.outputs) types.push_back((*this)[id].whole);
  return types;
}

std::string CutGraph::NewName(absl::string_view base, absl::string_view what) {
  std::string name = absl::StrCat(base, what);
  while (!names_.insert(name).second) absl::StrAppend(&name, "_");
  return name;
}

}  // namespace loadline::passes
