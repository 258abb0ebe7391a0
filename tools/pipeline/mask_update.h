// What a recipe does between steps: it scores channels, clears masks, and at
// the end of a phase chooses the channels that are removed.
#ifndef LOADLINE_TOOLS_PIPELINE_MASK_UPDATE_H_
#define LOADLINE_TOOLS_PIPELINE_MASK_UPDATE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/graph.h"
#include "passes/compress/phase_model.h"
#include "passes/compress/recipe.h"
#include "tools/pipeline/optimizer_states.h"
#include "tools/pipeline/persistent_values.h"

namespace loadline::tools {

// Masks of one entry for a sparsity (of the original width): masks more of the
// lowest-scoring channels or weights, sets them and their optimizer states to
// zero, and starts their accumulated scores again. Channels that are masked
// stay so. Errors: those of `values`; FailedPrecondition for a criterion that
// a group has no scores for.
absl::Status UpdateMasks(const passes::PhaseModel& phase,
                         const passes::PruneSpec& spec,
                         const passes::RecipeGroups& found, double sparsity,
                         uint64_t seed, const OptimizerStates& states,
                         PersistentValues& values);

// The channels of a structured entry that go at a sparsity, from the same
// scores: those that are masked, and as many more as are missing. Changes
// nothing.
absl::StatusOr<passes::RemovedChannels> ChannelsToRemove(
    const passes::PhaseModel& phase, const passes::PruneSpec& spec,
    const passes::RecipeGroups& found, double sparsity, uint64_t seed,
    PersistentValues& values);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_MASK_UPDATE_H_
