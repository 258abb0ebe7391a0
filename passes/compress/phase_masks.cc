// Groups may share an axis (a Concat's reader), and two entries may score it
// differently. Tested by tests/passes/compress/phase_model_test.cc.
#include "passes/compress/phase_masks.h"

#include <map>
#include <set>
#include <utility>

#include "passes/compress/channel_scores.h"

namespace loadline::passes {

std::vector<MaskedAxis> MasksOfPhase(const models::Graph& model,
                                     absl::Span<const PruneGroup> groups,
                                     const Recipe& recipe,
                                     absl::Span<const RecipeGroups> found,
                                     const RecipePhase& phase) {
  std::map<std::pair<models::ValueId, int64_t>, std::set<PruneCriterion>> axes;
  const auto add = [&](models::ValueId value, int64_t axis,
                       PruneCriterion criterion) {
    std::set<PruneCriterion>& scores = axes[{value, axis}];
    if (NeedsGradients(criterion)) scores.insert(criterion);
  };
  for (size_t e : phase.masked) {
    const PruneCriterion criterion = recipe.entries[e].prune()->criterion;
    for (size_t g : found[e].groups) {
      for (const PruneMember* member : TrainedMembers(model, groups[g])) {
        add(member->value, member->axis, criterion);
      }
    }
    for (const MaskedWeight& weight : found[e].weights) {
      add(weight.value, kWholeTensor, criterion);
    }
  }
  std::vector<MaskedAxis> masks;
  for (const auto& [axis, scores] : axes) {
    masks.push_back({.parameter = model.value(axis.first).name,
                     .axis = axis.second,
                     .scores = {scores.begin(), scores.end()}});
  }
  return masks;
}

}  // namespace loadline::passes
