// The new order. Nodes of a region do not all run at the same time: between the
// forward and the backward part of a block lies the rest of the step. A node's
// stage is how often a path of the graph leaves the region before it. The nodes
// of one stage run part by part, as one unit: part 0 of each node, then part 1.
// No path leads from a stage through nodes outside back to it, so units and the
// other nodes can be ordered; of those that are ready, the one that was first
// before comes first. Inside the head of a language model nothing leads
// outside, so forward and backward are one unit.
//
// Tested in tests/passes/split_operators_test.cc and, for results, in
// tests/conformance/split_operators_conformance_test.cc.
#include "passes/split_region.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <string>
#include <utility>

#include "passes/part_writer.h"
#include "planner/base/check.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::kNoValue;
using models::Node;
using models::RowCut;
using models::ValueId;

constexpr int64_t kLargestGrain = 128;
constexpr int64_t kGrainsOfPart = 8;

// Which nodes run together, and in which order.
class UnitOrder {
 public:
  // `cut_of`: by node, its cut in the region, or null.
  UnitOrder(const Graph& graph, const std::vector<const RowCut*>& cut_of)
      : graph_(graph),
        cut_of_(cut_of),
        index_(models::IndexGraph(graph)),
        depth_(graph.nodes.size(), 0),
        unit_of_(graph.nodes.size(), 0) {}

  // Units in their order, each a list of nodes. The nodes of a unit of the
  // region are in the graph's order.
  std::vector<std::vector<size_t>> Run() {
    FindDepths();
    MakeUnits();
    return Sorted();
  }

 private:
  // Whether the operand passes from part to part.
  bool ByParts(size_t reader, size_t input, size_t maker) const {
    const RowCut* from = cut_of_[maker];
    const RowCut* to = cut_of_[reader];
    if (from == nullptr || to == nullptr || to->inputs[input] <= 0) {
      return false;
    }
    const std::vector<ValueId>& made = graph_.nodes[maker].outputs;
    const auto at =
        std::find(made.begin(), made.end(), graph_.nodes[reader].inputs[input]);
    return from->outputs[static_cast<size_t>(at - made.begin())] > 0;
  }

  // Calls function(input, maker) for each operand that a node makes.
  template <typename Function>
  void ForMakers(size_t reader, Function function) const {
    const std::vector<ValueId>& inputs = graph_.nodes[reader].inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == kNoValue) continue;
      const int32_t maker = index_.producer[Index(inputs[i])];
      if (maker >= 0) function(i, static_cast<size_t>(maker));
    }
  }

  // A node of the region has its stage as depth, one outside the first stage
  // that can follow it.
  void FindDepths() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      ForMakers(n, [&](size_t input, size_t maker) {
        const bool leaves =
            cut_of_[maker] != nullptr && !ByParts(n, input, maker);
        depth_[n] = std::max(depth_[n], depth_[maker] + (leaves ? 1 : 0));
      });
    }
  }

  void MakeUnits() {
    std::map<int, size_t> unit_of_stage;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      size_t unit = units_.size();
      if (cut_of_[n] != nullptr) {
        unit = unit_of_stage.try_emplace(depth_[n], unit).first->second;
      }
      if (unit == units_.size()) units_.emplace_back();
      units_[unit].push_back(n);
      unit_of_[n] = unit;
    }
  }

  std::vector<std::vector<size_t>> Sorted() {
    std::vector<std::set<size_t>> followers(units_.size());
    std::vector<int> waits(units_.size(), 0);
    const auto follow = [&](size_t before, size_t after) {
      if (before != after && followers[before].insert(after).second) {
        ++waits[after];
      }
    };
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      ForMakers(n, [&](size_t, size_t maker) {
        follow(unit_of_[maker], unit_of_[n]);
      });
    }
    // What reads a persistent value comes before its update.
    for (const auto& [old, next] : graph_.updates) {
      const int32_t update = index_.producer[Index(next)];
      if (update < 0) continue;
      for (models::NodeId reader : index_.consumers[Index(old)]) {
        if (Index(reader) < static_cast<size_t>(update)) {
          follow(unit_of_[Index(reader)],
                 unit_of_[static_cast<size_t>(update)]);
        }
      }
    }
    // Units are numbered by their first nodes.
    std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
    for (size_t u = 0; u < units_.size(); ++u) {
      if (waits[u] == 0) ready.push(u);
    }
    std::vector<std::vector<size_t>> sorted;
    while (!ready.empty()) {
      const size_t unit = ready.top();
      ready.pop();
      sorted.push_back(units_[unit]);
      for (size_t next : followers[unit]) {
        if (--waits[next] == 0) ready.push(next);
      }
    }
    LOADLINE_CHECK(sorted.size() == units_.size());
    return sorted;
  }

  const Graph& graph_;
  const std::vector<const RowCut*>& cut_of_;
  const models::GraphIndex index_;
  std::vector<int> depth_;  // by node
  std::vector<std::vector<size_t>> units_;
  std::vector<size_t> unit_of_;  // by node
};

}  // namespace

std::vector<int64_t> SegmentStarts(int64_t rows, int64_t segments) {
  LOADLINE_CHECK(segments >= 1 && segments <= rows);
  int64_t grain = kLargestGrain;
  while (grain > 1 && rows / segments / kGrainsOfPart < grain) grain /= 2;
  std::vector<int64_t> starts;
  for (int64_t i = 0; i < segments; ++i) {
    starts.push_back(rows * i / segments / grain * grain);
  }
  starts.push_back(rows);
  return starts;
}

absl::Status SplitRegion(Graph& graph, const RowRegion& region,
                         int64_t segments, absl::string_view label) {
  std::map<std::string, const RowCut*> cuts;
  for (const RegionNode& node : region.nodes) cuts[node.name] = &node.cut;
  std::vector<const RowCut*> cut_of;
  for (const Node& node : graph.nodes) {
    const auto found = cuts.find(node.name);
    cut_of.push_back(found == cuts.end() ? nullptr : found->second);
  }
  const std::vector<std::vector<size_t>> units = UnitOrder(graph, cut_of).Run();

  PartWriter writer(graph, cut_of, SegmentStarts(region.rows, segments),
                    std::string(label));
  for (const std::vector<size_t>& unit : units) {
    if (cut_of[unit[0]] == nullptr) {
      writer.Keep(unit[0]);
      continue;
    }
    for (int64_t part = 0; part < segments; ++part) {
      for (size_t node : unit) {
        LOADLINE_RETURN_IF_ERROR(writer.Write(node, part));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace loadline::passes
