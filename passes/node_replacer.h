// One walk over a graph's nodes in their order, each of which is kept or
// replaced where it stands.
#ifndef LOADLINE_PASSES_NODE_REPLACER_H_
#define LOADLINE_PASSES_NODE_REPLACER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "models/graph.h"

namespace loadline::passes {

class NodeReplacer {
 public:
  // Takes the graph's nodes out: what is to stay is kept. The graph must
  // outlive this.
  explicit NodeReplacer(models::Graph& graph);

  const std::vector<models::Node>& old_nodes() const { return old_nodes_; }
  const models::Graph& graph() const { return graph_; }
  const models::TensorType& TypeOf(models::ValueId id) const {
    return graph_.value(id).type;
  }

  // The old node that makes `id` for one reader and for no output or update;
  // null if there is none such.
  const models::Node* MakerForOneReader(models::ValueId id) const;

  void Keep(const models::Node& node) { graph_.nodes.push_back(node); }
  // A new node, named after the one that it is for; its only output.
  absl::StatusOr<models::ValueId> Make(const models::Node& of, const char* op,
                                       std::vector<models::ValueId> inputs,
                                       models::Attributes attributes);
  // The node made last makes what `old` made, under its name.
  void StandsFor(const models::Node& old);

 private:
  models::Graph& graph_;
  const models::GraphIndex index_;
  const std::vector<bool> named_;
  const std::vector<models::Node> old_nodes_;
};

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_NODE_REPLACER_H_
