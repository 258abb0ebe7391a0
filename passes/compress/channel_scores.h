// How much each channel of a group matters, from the contents of its members.
#ifndef LOADLINE_PASSES_COMPRESS_CHANNEL_SCORES_H_
#define LOADLINE_PASSES_COMPRESS_CHANNEL_SCORES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/graph.h"
#include "passes/compress/prune_groups.h"
#include "passes/compress/recipe.h"

namespace loadline::passes {

// The contents of a persistent value of the training step, f32, by name: a
// parameter, or a score that AddMasks accumulates. NotFound if there is none.
using ReadValue =
    std::function<absl::StatusOr<std::vector<float>>(const std::string& name)>;

// The members of a group that AddMasks masks and scores: trained parameters.
std::vector<const PruneMember*> TrainedMembers(const models::Graph& model,
                                               const PruneGroup& group);

// One score for each channel, higher: matters more. By criterion:
//   l1, l2       the sum of |w|, or of w², over the channel's weights in
//                members with two or more axes; group_lasso: the root of l2's
//   bn_scale     the sum of |scale| over the group's BatchNormalizations
//   taylor, fisher, movement   the sum of the accumulated scores of all trained
//                members
//   random       from `seed`, the group's name and the channel
// Sums are in f64 in the order of members and elements, so they depend on bits
// only. Errors: those of `read`; FailedPrecondition if the group has nothing
// that the criterion scores: no BatchNormalization, no accumulated scores.
absl::StatusOr<std::vector<double>> ScoreChannels(const models::Graph& model,
                                                  const PruneGroup& group,
                                                  PruneCriterion criterion,
                                                  uint64_t seed,
                                                  const ReadValue& read);

// Divides by the mean, so that scores of groups of different sizes compare; for
// criteria from weights alone. Those from gradients estimate the same loss in
// all groups and stay as they are.
void NormalizeScores(PruneCriterion criterion, std::vector<double>* scores);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_COMPRESS_CHANNEL_SCORES_H_
