// Everything is read from the persistent values, so a run that is resumed from
// a checkpoint goes on as if it had never stopped. Tested by
// tests/tools/pipeline/mask_update_test.cc.
#include "tools/pipeline/mask_update.h"

#include <algorithm>

#include "passes/compress/channel_scores.h"
#include "passes/compress/choose_channels.h"
#include "planner/base/status_macros.h"
#include "tools/pipeline/weight_mask.h"

namespace loadline::tools {
namespace {

using passes::PhaseModel;
using passes::PruneGroup;
using passes::PruneMember;
using passes::PruneSpec;
using passes::RecipeGroups;

// Which channels of a group are masked.
absl::StatusOr<std::vector<bool>> MaskedChannels(const PhaseModel& phase,
                                                 const PruneGroup& group,
                                                 PersistentValues& values) {
  std::vector<bool> masked(static_cast<size_t>(group.width), false);
  for (const PruneMember* member : passes::TrainedMembers(phase.model, group)) {
    const std::string name =
        passes::MaskName(phase.model.value(member->value).name, member->axis);
    if (!values.Has(name)) continue;
    LOADLINE_ASSIGN_OR_RETURN(const std::vector<float> mask, values.Read(name));
    for (size_t i = 0; i < mask.size(); ++i) {
      const int32_t channel = member->channel_of[i];
      if (channel >= 0 && mask[i] == 0) {
        masked[static_cast<size_t>(channel)] = true;
      }
    }
    break;  // all members agree
  }
  return masked;
}

struct Chosen {
  std::vector<std::vector<bool>> before;    // masked already, by group
  std::vector<std::vector<int64_t>> after;  // to be masked in all
};

absl::StatusOr<Chosen> Choose(const PhaseModel& phase, const PruneSpec& spec,
                              const RecipeGroups& found, double sparsity,
                              uint64_t seed, PersistentValues& values) {
  Chosen chosen;
  std::vector<std::vector<double>> scores;
  for (size_t g : found.groups) {
    const PruneGroup& group = phase.groups[g];
    LOADLINE_ASSIGN_OR_RETURN(chosen.before.emplace_back(),
                              MaskedChannels(phase, group, values));
    LOADLINE_ASSIGN_OR_RETURN(
        scores.emplace_back(),
        passes::ScoreChannels(
            phase.model, group, spec.criterion, seed,
            [&](const std::string& name) { return values.Read(name); }));
    passes::NormalizeScores(spec.criterion, &scores.back());
  }
  chosen.after = passes::ChooseChannels(scores, chosen.before,
                                        passes::ChoiceOf(spec, sparsity));
  return chosen;
}

// Sets the elements of `name` at indices of an axis to zero.
absl::Status ClearIndices(const models::TensorType& type, int64_t axis,
                          const std::vector<bool>& clear,
                          const std::string& name, PersistentValues& values) {
  int64_t inner = 1;
  for (size_t i = static_cast<size_t>(axis) + 1; i < type.dims.size(); ++i) {
    inner *= type.dims[i];
  }
  const int64_t size = type.dims[static_cast<size_t>(axis)];
  return values.Clear(name, type.elements(), [&](int64_t e) {
    return clear[static_cast<size_t>(e / inner % size)];
  });
}

// Sets elements of a state of one value for each index to zero.
absl::Status ClearVector(const std::vector<bool>& clear,
                         const std::string& name, PersistentValues& values) {
  LOADLINE_ASSIGN_OR_RETURN(std::vector<float> contents, values.Read(name));
  for (size_t i = 0; i < contents.size(); ++i) {
    if (clear[i]) contents[i] = 0;
  }
  return values.Write(name, contents);
}

std::vector<bool> IndicesOf(const PruneMember& member,
                            const std::vector<bool>& channels) {
  std::vector<bool> indices;
  for (int32_t channel : member.channel_of) {
    indices.push_back(channel >= 0 && channels[static_cast<size_t>(channel)]);
  }
  return indices;
}

absl::Status MaskGroup(const PhaseModel& phase, const PruneGroup& group,
                       const PruneSpec& spec,
                       const std::vector<bool>& newly_masked,
                       const OptimizerStates& states,
                       PersistentValues& values) {
  const std::vector<bool> all(static_cast<size_t>(group.width), true);
  const bool any = std::count(newly_masked.begin(), newly_masked.end(), true);
  for (const PruneMember* member : passes::TrainedMembers(phase.model, group)) {
    const models::Value& parameter = phase.model.value(member->value);
    if (passes::NeedsGradients(spec.criterion)) {
      LOADLINE_RETURN_IF_ERROR(ClearVector(
          IndicesOf(*member, all),
          passes::ScoreName(parameter.name, member->axis, spec.criterion),
          values));
    }
    if (!any) continue;
    const std::vector<bool> indices = IndicesOf(*member, newly_masked);
    const std::string mask = passes::MaskName(parameter.name, member->axis);
    if (!values.Has(mask)) continue;  // no gradient: nothing trains it
    LOADLINE_RETURN_IF_ERROR(ClearVector(indices, mask, values));
    std::vector<std::string> names = {parameter.name};
    const auto found = states.find(parameter.name);
    if (found != states.end()) {
      names.insert(names.end(), found->second.begin(), found->second.end());
    }
    for (const std::string& name : names) {
      LOADLINE_RETURN_IF_ERROR(
          ClearIndices(parameter.type, member->axis, indices, name, values));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status UpdateMasks(const PhaseModel& phase, const PruneSpec& spec,
                         const RecipeGroups& found, double sparsity,
                         uint64_t seed, const OptimizerStates& states,
                         PersistentValues& values) {
  for (const passes::MaskedWeight& weight : found.weights) {
    LOADLINE_RETURN_IF_ERROR(UpdateWeightMask(phase.model.value(weight.value),
                                              weight.reduced_axis, spec,
                                              sparsity, states, values));
  }
  if (found.groups.empty()) return absl::OkStatus();
  LOADLINE_ASSIGN_OR_RETURN(const Chosen chosen,
                            Choose(phase, spec, found, sparsity, seed, values));
  for (size_t i = 0; i < found.groups.size(); ++i) {
    const PruneGroup& group = phase.groups[found.groups[i]];
    std::vector<bool> newly_masked(static_cast<size_t>(group.width), false);
    for (int64_t channel : chosen.after[i]) {
      const auto c = static_cast<size_t>(channel);
      newly_masked[c] = !chosen.before[i][c];
    }
    LOADLINE_RETURN_IF_ERROR(
        MaskGroup(phase, group, spec, newly_masked, states, values));
  }
  return absl::OkStatus();
}

absl::StatusOr<passes::RemovedChannels> ChannelsToRemove(
    const PhaseModel& phase, const PruneSpec& spec, const RecipeGroups& found,
    double sparsity, uint64_t seed, PersistentValues& values) {
  LOADLINE_ASSIGN_OR_RETURN(const Chosen chosen,
                            Choose(phase, spec, found, sparsity, seed, values));
  passes::RemovedChannels removed;
  for (size_t i = 0; i < found.groups.size(); ++i) {
    if (chosen.after[i].empty()) continue;
    removed[phase.groups[found.groups[i]].name] = chosen.after[i];
  }
  return removed;
}

}  // namespace loadline::tools
