// Tested in tests/passes/fuse_bias_test.cc and fuse_gelu_gradient_test.cc.
#include "passes/node_replacer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "passes/rewrite.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {

using models::Node;
using models::ValueId;

NodeReplacer::NodeReplacer(models::Graph& graph)
    : graph_(graph),
      index_(models::IndexGraph(graph)),
      named_(NamedByGraph(graph)),
      old_nodes_(std::move(graph.nodes)) {
  graph_.nodes.clear();
}

const Node* NodeReplacer::MakerForOneReader(ValueId id) const {
  const int32_t producer = index_.producer[Index(id)];
  const bool only =
      index_.consumers[Index(id)].size() == 1 && !named_[Index(id)];
  return producer < 0 || !only ? nullptr
                               : &old_nodes_[static_cast<size_t>(producer)];
}

absl::StatusOr<ValueId> NodeReplacer::Make(const Node& of, const char* op,
                                           std::vector<ValueId> inputs,
                                           models::Attributes attributes) {
  LOADLINE_ASSIGN_OR_RETURN(
      const std::vector<ValueId> made,
      graph_.AddNode(op, absl::StrCat(of.name, ".", op), std::move(inputs),
                     std::move(attributes), of.phase));
  return made[0];
}

void NodeReplacer::StandsFor(const Node& old) {
  graph_.nodes.back().outputs = old.outputs;
  graph_.Rename(models::NodeId(static_cast<int32_t>(graph_.nodes.size() - 1)),
                old.name);
}

}  // namespace loadline::passes
