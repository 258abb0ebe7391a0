// Tested by tests/passes/compress/phase_model_test.cc.
#include "passes/compress/channel_scores.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "passes/compress/add_masks.h"
#include "planner/base/random.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::ValueId;

// Calls f(channel, element) for every element of a tensor that belongs to a
// channel of the member.
template <typename F>
void ForEachElement(const models::TensorType& type, const PruneMember& member,
                    const F& f) {
  const auto axis = static_cast<size_t>(member.axis);
  int64_t inner = 1;
  for (size_t i = axis + 1; i < type.dims.size(); ++i) inner *= type.dims[i];
  const int64_t size = type.dims[axis];
  const int64_t elements = type.elements();
  for (int64_t e = 0; e < elements; ++e) {
    const int32_t channel =
        member.channel_of[static_cast<size_t>(e / inner % size)];
    if (channel >= 0) f(static_cast<size_t>(channel), static_cast<size_t>(e));
  }
}

bool IsScaleOfBatchNorm(const Graph& model, const PruneGroup& group,
                        ValueId value) {
  for (models::NodeId n : group.nodes) {
    const models::Node& node = model.node(n);
    if ((node.op == "BatchNormTraining" || node.op == "BatchNormalization") &&
        node.inputs[1] == value) {
      return true;
    }
  }
  return false;
}

std::vector<double> RandomScores(const PruneGroup& group, uint64_t seed) {
  uint64_t state = planner::SplitMix64(seed);
  for (char c : group.name) {
    state = planner::SplitMix64(state ^ static_cast<uint8_t>(c));
  }
  std::vector<double> scores;
  for (int64_t c = 0; c < group.width; ++c) {
    state = planner::SplitMix64(state);
    scores.push_back(static_cast<double>(state >> 11));
  }
  return scores;
}

}  // namespace

std::vector<const PruneMember*> TrainedMembers(const Graph& model,
                                               const PruneGroup& group) {
  std::vector<const PruneMember*> trained;
  for (const PruneMember& member : group.members) {
    if (Index(member.value) >= model.values.size()) continue;
    const models::Value& value = model.value(member.value);
    if (value.kind == models::ValueKind::kParameter) trained.push_back(&member);
  }
  return trained;
}

absl::StatusOr<std::vector<double>> ScoreChannels(const Graph& model,
                                                  const PruneGroup& group,
                                                  PruneCriterion criterion,
                                                  uint64_t seed,
                                                  const ReadValue& read) {
  if (criterion == PruneCriterion::kRandom) return RandomScores(group, seed);
  std::vector<double> scores(static_cast<size_t>(group.width), 0.0);
  bool any = false;
  for (const PruneMember* member : TrainedMembers(model, group)) {
    const models::Value& value = model.value(member->value);
    if (NeedsGradients(criterion)) {
      const auto sums = read(ScoreName(value.name, member->axis, criterion));
      if (absl::IsNotFound(sums.status())) continue;  // it has no gradient
      LOADLINE_RETURN_IF_ERROR(sums.status());
      for (size_t i = 0; i < member->channel_of.size(); ++i) {
        const int32_t channel = member->channel_of[i];
        if (channel >= 0) scores[static_cast<size_t>(channel)] += (*sums)[i];
      }
      any = true;
      continue;
    }
    const bool bn = criterion == PruneCriterion::kBnScale;
    if (bn ? !IsScaleOfBatchNorm(model, group, member->value)
           : value.type.rank() < 2) {
      continue;
    }
    any = true;
    LOADLINE_ASSIGN_OR_RETURN(const std::vector<float> w, read(value.name));
    const bool absolute = bn || criterion == PruneCriterion::kL1;
    ForEachElement(value.type, *member, [&](size_t channel, size_t e) {
      const double x = w[e];
      scores[channel] += absolute ? std::abs(x) : x * x;
    });
  }
  if (!any) {
    return absl::FailedPreconditionError(absl::StrCat(
        "group '", group.name, "' has no ",
        criterion == PruneCriterion::kBnScale ? "BatchNormalization"
        : NeedsGradients(criterion)
            ? "gradients to score its channels by: its window must start after "
              "the first step"
            : "weights"));
  }
  if (criterion == PruneCriterion::kGroupLasso) {
    for (double& score : scores) score = std::sqrt(score);
  }
  return scores;
}

void NormalizeScores(PruneCriterion criterion, std::vector<double>* scores) {
  if (NeedsGradients(criterion) || criterion == PruneCriterion::kRandom) return;
  double sum = 0;
  for (double score : *scores) sum += score;
  if (sum <= 0) return;
  const double mean = sum / static_cast<double>(scores->size());
  for (double& score : *scores) score /= mean;
}

}  // namespace loadline::passes
