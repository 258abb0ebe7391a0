// Physical pruning: the model without some of its channels.
//
//   conv1 w f32[64,3,3,3], conv2 w f32[128,64,3,3]
//   -> without 32 channels of group "conv1":
//   conv1 w f32[32,3,3,3], conv2 w f32[128,32,3,3]
#ifndef LOADLINE_PASSES_COMPRESS_PRUNE_GRAPH_H_
#define LOADLINE_PASSES_COMPRESS_PRUNE_GRAPH_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/graph.h"
#include "models/types.h"
#include "passes/compress/prune_groups.h"

namespace loadline::passes {

// The indices of one axis that stay, in rising order.
struct KeptAxis {
  int64_t axis = 0;
  std::vector<int64_t> indices;
};

struct PrunedGraph {
  // Values and nodes have the ids and names that they had.
  models::Graph graph;
  // For each persistent value that lost indices, by name: its shortened axes.
  // Optimizer states have the parameter's shape and are sliced alike.
  std::map<std::string, std::vector<KeptAxis>> kept;
};

// The model without `removed[g]`, channels of groups[g]. `groups` are those of
// FindPruneGroups(model), all of them and in their order. Slices persistent
// values and their contents, rewrites attributes (`shape` of Reshape, Expand
// and others, `sizes` of Split, bounds of Slice, `group` of Conv) and infers
// every type anew.
//
// Errors: InvalidArgument for a channel that does not exist, a frozen group
// with a channel to remove, or a group of which no channel would stay.
absl::StatusOr<PrunedGraph> PruneGraph(
    const models::Graph& model, absl::Span<const PruneGroup> groups,
    absl::Span<const std::vector<int64_t>> removed);

// The slices of `tensor` at the kept indices of these axes. A tensor without
// contents (ImportOptions::allow_missing_weights) stays without.
// InvalidArgument if an axis or index lies outside of the tensor.
absl::StatusOr<models::Tensor> KeepIndices(const models::Tensor& tensor,
                                           absl::Span<const KeptAxis> kept);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_COMPRESS_PRUNE_GRAPH_H_
