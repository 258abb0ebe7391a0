// One pass over a graph's nodes in order, in which each node is kept or
// replaced.
#ifndef LOADLINE_PASSES_NODE_REPLACER_H_
#define LOADLINE_PASSES_NODE_REPLACER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "models/graph.h"

namespace loadline::passes {

class NodeReplacer {
 public:
  // Takes all nodes out of the graph; Keep and Make put nodes back. The graph
  // must outlive this object.
  explicit NodeReplacer(models::Graph& graph);

  const std::vector<models::Node>& old_nodes() const { return old_nodes_; }
  const models::Graph& graph() const { return graph_; }
  const models::TensorType& TypeOf(models::ValueId id) const {
    return graph_.value(id).type;
  }

  // The old node that computes `id`, if `id` has exactly one reader and is no
  // output or update; otherwise null.
  const models::Node* MakerForOneReader(models::ValueId id) const;

  void Keep(const models::Node& node) { graph_.nodes.push_back(node); }
  // Adds a new node named after `of`; returns its only output.
  absl::StatusOr<models::ValueId> Make(const models::Node& of, const char* op,
                                       std::vector<models::ValueId> inputs,
                                       models::Attributes attributes);
  // Gives the outputs of `old`, with their names, to the node made last.
  void StandsFor(const models::Node& old);

 private:
  models::Graph& graph_;
  const models::GraphIndex index_;
  const std::vector<bool> named_;
  const std::vector<models::Node> old_nodes_;
};

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_NODE_REPLACER_H_
