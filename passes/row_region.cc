// A worklist of values inside the region: each adds its maker and its readers,
// and those may bring further large values inside. A node with several ways to
// be cut takes the first one that cuts all of its values inside. Tested in
// tests/passes/split_operators_test.cc.
#include "passes/row_region.h"

#include <algorithm>
#include <map>
#include <set>

#include "models/storage.h"
#include "passes/rewrite.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::GraphIndex;
using models::kNoValue;
using models::Node;
using models::NodeId;
using models::RowCut;
using models::ValueId;
using models::ValueKind;

class Grower {
 public:
  Grower(const Graph& graph, const GraphIndex& index, int64_t rows,
         int64_t inside_bytes, size_t most_nodes,
         const std::vector<bool>& taken)
      : graph_(graph),
        index_(index),
        rows_(rows),
        inside_bytes_(inside_bytes),
        most_nodes_(most_nodes),
        taken_(taken),
        named_(NamedByGraph(graph)) {}

  std::optional<RowRegion> Run(const std::vector<ValueId>& seeds) {
    for (ValueId seed : seeds) Bring(seed);
    while (!open_.empty()) {
      const ValueId id = open_.back();
      open_.pop_back();
      if (!Surround(id)) return std::nullopt;
    }
    return Finish();
  }

 private:
  // Inputs and parameters exist whole anyway.
  void Bring(ValueId id) {
    if (graph_.value(id).kind != ValueKind::kIntermediate) return;
    if (inside_.insert(id).second) open_.push_back(id);
  }

  bool Surround(ValueId id) {
    const int32_t maker = index_.producer[Index(id)];
    if (maker < 0 || named_[Index(id)]) return false;
    std::vector<NodeId> nodes = index_.consumers[Index(id)];
    nodes.push_back(NodeId{maker});
    for (NodeId node : nodes) {
      if (!Add(node)) return false;
    }
    return true;
  }

  bool Add(NodeId id) {
    const auto [entry, is_new] = nodes_.try_emplace(id);
    const Node& node = graph_.node(id);
    if (is_new) {
      if (taken_[Index(id)] || nodes_.size() > most_nodes_) return false;
      entry->second = models::RowCutsOf(graph_, node, rows_);
    }
    std::vector<RowCut>& ways = entry->second;
    std::erase_if(ways,
                  [&](const RowCut& way) { return !CutsInside(node, way); });
    if (ways.empty()) return false;
    ForRows(node, ways[0], [&](ValueId value) {
      if (graph_.value(value).type.bytes() >= inside_bytes_ ||
          models::IsView(node)) {
        Bring(value);
      }
    });
    return true;
  }

  // Whether the way cuts every value inside that the node touches.
  bool CutsInside(const Node& node, const RowCut& way) const {
    bool all = true;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      all = all && (inside_.count(node.inputs[i]) == 0 || way.inputs[i] > 0);
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      all = all && (inside_.count(node.outputs[i]) == 0 || way.outputs[i] > 0);
    }
    return all;
  }

  template <typename Function>
  static void ForRows(const Node& node, const RowCut& way, Function function) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] != kNoValue && way.inputs[i] > 0) {
        function(node.inputs[i]);
      }
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (way.outputs[i] > 0) function(node.outputs[i]);
    }
  }

  std::optional<RowRegion> Finish() {
    RowRegion region;
    region.rows = rows_;
    std::set<ValueId> ends;
    for (auto& [id, ways] : nodes_) {
      const Node& node = graph_.node(id);
      // Values that came inside later may exclude a way.
      std::erase_if(ways,
                    [&](const RowCut& way) { return !CutsInside(node, way); });
      if (ways.empty()) return std::nullopt;
      ForRows(node, ways[0], [&](ValueId value) {
        if (inside_.count(value) == 0) ends.insert(value);
      });
      region.nodes.push_back({id, node.name, ways[0]});
    }
    region.inside.assign(inside_.begin(), inside_.end());
    region.ends.assign(ends.begin(), ends.end());
    return region;
  }

  const Graph& graph_;
  const GraphIndex& index_;
  const int64_t rows_;
  const int64_t inside_bytes_;
  const size_t most_nodes_;
  const std::vector<bool>& taken_;
  const std::vector<bool> named_;
  std::set<ValueId> inside_;
  std::vector<ValueId> open_;
  std::map<NodeId, std::vector<RowCut>> nodes_;  // the ways that are left
};

}  // namespace

std::optional<RowRegion> GrowRegion(const Graph& graph, const GraphIndex& index,
                                    const std::vector<ValueId>& seeds,
                                    int64_t rows, int64_t inside_bytes,
                                    size_t most_nodes,
                                    const std::vector<bool>& taken) {
  return Grower(graph, index, rows, inside_bytes, most_nodes, taken).Run(seeds);
}

}  // namespace loadline::passes
