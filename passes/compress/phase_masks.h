// The axes that a training step masks and scores in a phase of a recipe.
#ifndef LOADLINE_PASSES_COMPRESS_PHASE_MASKS_H_
#define LOADLINE_PASSES_COMPRESS_PHASE_MASKS_H_

#include <vector>

#include "absl/types/span.h"
#include "models/graph.h"
#include "passes/compress/add_masks.h"
#include "passes/compress/prune_groups.h"
#include "passes/compress/recipe.h"
#include "passes/compress/recipe_groups.h"
#include "passes/compress/recipe_phases.h"

namespace loadline::passes {

// For AddMasks, ordered by parameter and axis, each once. `groups`: of
// FindPruneGroups(model); `found`: of FindRecipeGroups.
std::vector<MaskedAxis> MasksOfPhase(const models::Graph& model,
                                     absl::Span<const PruneGroup> groups,
                                     const Recipe& recipe,
                                     absl::Span<const RecipeGroups> found,
                                     const RecipePhase& phase);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_COMPRESS_PHASE_MASKS_H_
