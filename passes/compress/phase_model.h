// A model at the start of a phase, and what the recipe masks in it.
#ifndef LOADLINE_PASSES_COMPRESS_PHASE_MODEL_H_
#define LOADLINE_PASSES_COMPRESS_PHASE_MODEL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/graph.h"
#include "passes/compress/add_fake_quantize.h"
#include "passes/compress/choose_channels.h"
#include "passes/compress/phase_masks.h"
#include "passes/compress/prune_graph.h"
#include "passes/compress/prune_groups.h"
#include "passes/compress/recipe.h"
#include "passes/compress/recipe_groups.h"
#include "passes/compress/recipe_phases.h"

namespace loadline::passes {

struct PhaseModel {
  models::Graph model;  // as imported, without the channels removed before
  std::vector<PruneGroup> groups;
  std::vector<RecipeGroups> found;  // by entry; of the phase's entries only
  std::vector<MaskedAxis> masks;
  // What is trained: `model` with the quantizers of the phase.
  models::Graph step_model;
  std::vector<QuantizedTensor> quantizers;
};

// `model` with the quantizers of the phase's entries, each in its stage, or all
// in `stage`. Appends to `quantizers`. Errors: those of MatchRecipe and
// AddFakeQuantize.
absl::StatusOr<models::Graph> QuantizeModel(
    models::Graph model, const Recipe& recipe, const RecipePhase& phase,
    std::optional<QuantizeStage> stage,
    std::vector<QuantizedTensor>* quantizers);

// Errors: those of MatchRecipe, FindPruneGroups and FindRecipeGroups.
absl::StatusOr<PhaseModel> MakePhaseModel(models::Graph model,
                                          const Recipe& recipe,
                                          const RecipePhase& phase);

// Channels that go, by the name of their group.
using RemovedChannels = std::map<std::string, std::vector<int64_t>>;

// The model without these channels. Errors: those of PruneGraph;
// InvalidArgument for a group that the model does not have.
absl::StatusOr<PrunedGraph> RemoveChannels(const PhaseModel& phase,
                                           const RemovedChannels& removed);

// How far the entry's channels are to be pruned.
ChannelChoice ChoiceOf(const PruneSpec& spec, double sparsity);

// As many channels as the phase's end removes, if the recipe's entries reach
// `targets` (by entry, as a sparsity). Which channels go is not known before
// training, so these are the first ones. Their number is known, but for a
// global scope, where every group is taken to lose the same share.
RemovedChannels FirstChannels(const PhaseModel& model, const Recipe& recipe,
                              const RecipePhase& phase,
                              absl::Span<const double> targets);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_COMPRESS_PHASE_MODEL_H_
