// Which channels of a model can be removed, and what goes with each of them.
//
// A channel is a set of indices along axes of values that only make sense
// together: a convolution's filter, its bias, the scale and running statistics
// of the normalization behind it, and the slice of every weight that reads it.
// A group is the set of channels that one producer, or several whose outputs
// are added, makes.
//
// Method: union-find on axis atoms. Every index of every axis of every value is
// an atom; each operator relates atoms of its inputs and outputs (relate.h);
// a connected component is a channel; components that cover the same axes as
// often form a group. This is the dependency graph of Torch-Pruning (Fang et
// al., "DepGraph: Towards Any Structural Pruning", CVPR 2023) at the level of
// indices instead of layers, which settles Concat, Split and Reshape without
// special cases; coupled channels by index are also in Wang et al.,
// "Structurally Prune Anything" (2024).
#ifndef LOADLINE_PASSES_COMPRESS_PRUNE_GROUPS_H_
#define LOADLINE_PASSES_COMPRESS_PRUNE_GROUPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/graph.h"

namespace loadline::passes {

// An axis that a group runs along.
struct PruneMember {
  models::ValueId value;
  int64_t axis = 0;
  // For each index of the axis, the channel of this group that it belongs to;
  // -1: none. One channel may have several indices.
  std::vector<int32_t> channel_of;
};

struct PruneGroup {
  // The node that makes the channels, the first in the graph's order, such as
  // "/layer1/conv1/Conv". Unique: further groups of one node get "#2", "#3".
  std::string name;
  int64_t width = 0;  // channels
  // Persistent values, ordered by value and axis. The first channel is the one
  // whose index is lowest in the first member, and so on.
  std::vector<PruneMember> members;
  // Other values alike. Ids beyond the model's values are copies of constants
  // that several nodes read (separate_constants.h).
  std::vector<PruneMember> activations;
  // The nodes that read or make one of them, in order.
  std::vector<models::NodeId> nodes;
  bool heads = false;  // a channel is an attention head
  // Why the group must not be pruned; empty: it may be.
  std::string frozen;
  // Why a masked channel is not the same as a removed one, such as "statistics
  // of LayerNormalization"; empty: a model whose members are zero in a channel
  // computes what the model without the channel computes.
  std::string approximate;
};

// The groups of an imported model (before BuildTrainingStep) that an operator
// makes from a trained weight, in the order of these operators. Frozen groups
// are listed too. Indices that no weight makes, such as those of a kernel's
// window or of a table's rows, are in no group and always stay.
//
// Never to zero width: a channel has an index in every member, so a group that
// keeps one channel leaves every axis with at least one index.
//
// ResourceExhausted beyond 2^28 indices in all. Time and memory are linear in
// the sum of all dimensions.
absl::StatusOr<std::vector<PruneGroup>> FindPruneGroups(
    const models::Graph& model);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_COMPRESS_PRUNE_GROUPS_H_
