// Tested in tests/models/onnx_straight_through_test.cc.
#include "models/onnx/straight_through.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/onnx/gradient_flow.h"
#include "models/onnx/name_list.h"

namespace loadline::models::onnx_internal {
namespace {

using Node = onnx::NodeProto;

// An input of a node behind which detach() was.
struct Edge {
  int node;
  int input;
};

// The checker of the onnx library has not seen the model yet.
bool IsOf(const Node& node, const char* op) {
  return node.op_type() == op && node.input_size() == 2 &&
         node.output_size() == 1;
}

class Finder {
 public:
  explicit Finder(const onnx::GraphProto& graph) : graph_(graph) {
    for (int n = 0; n < graph.node_size(); ++n) {
      for (const auto& name : graph.node(n).output()) maker_[name] = n;
      for (const auto& name : graph.node(n).input()) ++readers_[name];
    }
    for (const auto& output : graph.output()) ++readers_[output.name()];
  }

  // Empty if node n is not the end of an estimator.
  std::vector<Edge> EdgesOf(int n) const {
    const Node& node = graph_.node(n);
    if (IsOf(node, "Add")) {
      for (const int i : {0, 1}) {
        const Node* inner = Maker(node.input(i), "Sub");
        if (inner != nullptr && inner->input(1) == node.input(1 - i) &&
            IsCutOff(inner->input(1), inner->input(0))) {
          return {{n, i}};
        }
      }
    } else if (IsOf(node, "Sub")) {
      const Node* inner = Maker(node.input(1), "Sub");
      if (inner != nullptr && inner->input(0) == node.input(0) &&
          IsCutOff(inner->input(0), inner->input(1))) {
        return {{n, 1}};
      }
      inner = Maker(node.input(0), "Add");
      if (inner == nullptr || readers_.at(node.input(0)) > 1) return {};
      for (const int i : {0, 1}) {
        if (inner->input(i) == node.input(1) &&
            IsCutOff(inner->input(i), inner->input(1 - i))) {
          return {{n, 1}, {maker_.at(node.input(0)), 1 - i}};
        }
      }
    }
    return {};
  }

 private:
  // Whether q passes no gradient to x.
  bool IsCutOff(const std::string& x, const std::string& q) const {
    const auto last = maker_.find(q), first = maker_.find(x);
    if (last == maker_.end()) return q != x;
    return ReachedByGradient(graph_, {q}, {},
                             first == maker_.end() ? 0 : first->second + 1,
                             last->second)
               .count(x) == 0;
  }

  // The node that makes the value, if it is such an operator.
  const Node* Maker(const std::string& value, const char* op) const {
    const auto found = maker_.find(value);
    if (found == maker_.end()) return nullptr;
    const Node& node = graph_.node(found->second);
    return IsOf(node, op) ? &node : nullptr;
  }

  const onnx::GraphProto& graph_;
  std::map<std::string, int> maker_;
  std::map<std::string, int> readers_;
};

}  // namespace

std::string DetachStraightThrough(onnx::GraphProto* graph, ExportMarks* marks) {
  if (!marks->detached.empty()) return "";
  const Finder finder(*graph);
  std::map<int, std::set<int>> inputs;  // to detach, by node
  std::vector<std::string> results;
  for (int n = 0; n < graph->node_size(); ++n) {
    const std::vector<Edge> edges = finder.EdgesOf(n);
    if (!edges.empty()) results.push_back(graph->node(n).output(0));
    for (const Edge& edge : edges) inputs[edge.node].insert(edge.input);
  }
  if (results.empty()) return "";
  onnx::GraphProto rebuilt;
  for (int n = 0; n < graph->node_size(); ++n) {
    Node& node = *graph->mutable_node(n);
    for (const int i : inputs[n]) {
      Node* identity = rebuilt.add_node();
      identity->set_op_type("Identity");
      identity->set_name(absl::StrCat(node.output(0), "/straight_through_", i));
      identity->add_input(node.input(i));
      identity->add_output(identity->name());
      marks->detached.insert(identity->name());
      node.set_input(i, identity->name());
    }
    *rebuilt.add_node() = std::move(node);
  }
  graph->mutable_node()->Swap(rebuilt.mutable_node());
  return absl::StrCat(
      "taken for straight-through estimators, x + (q - x) with a gradient to x "
      "alone, as with detach() of q - x, which the file has lost: ",
      NameList(results));
}

}  // namespace loadline::models::onnx_internal
