// Which groups of channels each entry of a recipe prunes.
#ifndef LOADLINE_PASSES_COMPRESS_RECIPE_GROUPS_H_
#define LOADLINE_PASSES_COMPRESS_RECIPE_GROUPS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/graph.h"
#include "passes/compress/prune_groups.h"
#include "passes/compress/recipe.h"

namespace loadline::passes {

// A weight that is masked element by element.
struct MaskedWeight {
  models::ValueId value;
  int64_t reduced_axis = 0;  // for 2:4: the axis along which fours lie
};

// What one entry prunes in a model.
struct RecipeGroups {
  std::vector<size_t> groups;  // of a structured entry; rising
  // Groups that the entry names in part or in whole, but does not prune:
  // "/a/Conv: reason".
  std::vector<std::string> left_out;
  // The weights that a masking entry (unstructured, 2:4, block2x4) masks:
  // parameters with two or more axes; for 2:4 those that products sum over.
  std::vector<MaskedWeight> weights;
};

// The nodes that make a group's channels: they read a weight of the group and
// their output has its channels. In the graph's order.
std::vector<models::NodeId> MakersOf(const models::Graph& model,
                                     const PruneGroup& group);

// By entry, of the prune entries in `entries` only. `nodes`: of MatchRecipe.
// `groups`: of FindPruneGroups. A structured entry prunes a group if it has all
// the nodes that make the group's channels out of weights: all convolutions,
// say, whose outputs are added. InvalidArgument, as RecipeError: an entry that
// prunes nothing, with the reasons; weights that its pattern does
// not fit.
absl::StatusOr<std::vector<RecipeGroups>> FindRecipeGroups(
    const models::Graph& model, absl::Span<const PruneGroup> groups,
    const Recipe& recipe, absl::Span<const std::vector<models::NodeId>> nodes,
    absl::Span<const size_t> entries);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_COMPRESS_RECIPE_GROUPS_H_
