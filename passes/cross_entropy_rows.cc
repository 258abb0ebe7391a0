// Tested in tests/passes/split_operators_test.cc for structure and in
// tests/conformance/split_operators_conformance_test.cc for its bits.
#include "passes/cross_entropy_rows.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::Node;
using models::ValueId;

class Divider {
 public:
  explicit Divider(Graph& graph) : graph_(graph) {}

  absl::Status Run() {
    std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (Node& node : nodes) {
      // CrossEntropyMean has no weights of classes.
      if (node.op == "SoftmaxCrossEntropy" && node.inputs.size() < 4) {
        LOADLINE_RETURN_IF_ERROR(Divide(node));
        continue;
      }
      if (node.op == "SoftmaxCrossEntropyGrad" && node.inputs.size() == 4) {
        LOADLINE_ASSIGN_OR_RETURN(const ValueId count, CountOf(node));
        node.inputs.push_back(count);
      }
      graph_.nodes.push_back(std::move(node));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Divide(const Node& node) {
    const ValueId target = node.inputs[1];
    LOADLINE_ASSIGN_OR_RETURN(
        const std::vector<ValueId> rows,
        graph_.AddNode("CrossEntropyRows", absl::StrCat(node.name, ".rows"),
                       {node.inputs[0], target}, node.attributes, node.phase));
    // The original's outputs keep their names.
    graph_.nodes.back().outputs[0] = node.outputs[1];
    std::vector<ValueId> operands = {node.outputs[1], rows[1], target};
    if (node.inputs.size() > 2) operands.push_back(node.inputs[2]);
    LOADLINE_RETURN_IF_ERROR(graph_
                                 .AddNode("CrossEntropyMean", node.name,
                                          std::move(operands), {}, node.phase)
                                 .status());
    graph_.nodes.back().outputs[0] = node.outputs[0];
    return absl::OkStatus();
  }

  absl::StatusOr<ValueId> CountOf(const Node& gradient) {
    const ValueId target = gradient.inputs[2];
    const auto known = counts_.find(target);
    if (known != counts_.end()) return known->second;
    LOADLINE_ASSIGN_OR_RETURN(
        const std::vector<ValueId> count,
        graph_.AddNode("CountTargets",
                       absl::StrCat(graph_.value(target).name, ".count"),
                       {target}, {}, gradient.phase));
    counts_[target] = count[0];
    return count[0];
  }

  Graph& graph_;
  std::map<ValueId, ValueId> counts_;  // by target
};

}  // namespace

absl::Status DivideCrossEntropy(Graph& graph) { return Divider(graph).Run(); }

}  // namespace loadline::passes
