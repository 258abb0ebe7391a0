// Tested by tests/passes/compress/phase_model_test.cc.
#include "passes/compress/phase_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "passes/use_running_statistics.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {

namespace {

// `error` of AddFakeQuantize with the entry that has it, if one has it alone.
absl::Status OfEntry(const models::Graph& model, const Recipe& recipe,
                     const RecipePhase& phase,
                     const std::vector<QuantizeRequest>& requests,
                     const absl::Status& error) {
  for (size_t i = 0; i < requests.size(); ++i) {
    models::Graph graph = model;
    const absl::Status alone =
        AddFakeQuantize(graph, absl::MakeConstSpan(&requests[i], 1)).status();
    if (alone.ok()) continue;
    return {alone.code(),
            RecipeError(recipe, recipe.entries[phase.quantized[i].entry],
                        "object", alone.message())
                .message()};
  }
  return error;
}

}  // namespace

absl::StatusOr<PhaseModel> MakePhaseModel(models::Graph model,
                                          const Recipe& recipe,
                                          const RecipePhase& phase) {
  PhaseModel made;
  made.model = std::move(model);
  LOADLINE_ASSIGN_OR_RETURN(const auto nodes, MatchRecipe(made.model, recipe));
  LOADLINE_ASSIGN_OR_RETURN(made.groups, FindPruneGroups(made.model));
  LOADLINE_ASSIGN_OR_RETURN(
      made.found,
      FindRecipeGroups(made.model, made.groups, recipe, nodes, phase.masked));
  made.masks = MasksOfPhase(made.model, made.groups, recipe, made.found, phase);
  LOADLINE_ASSIGN_OR_RETURN(
      made.step_model,
      QuantizeModel(made.model, recipe, phase, {}, &made.quantizers));
  return made;
}

absl::StatusOr<models::Graph> QuantizeModel(
    models::Graph model, const Recipe& recipe, const RecipePhase& phase,
    std::optional<QuantizeStage> stage,
    std::vector<QuantizedTensor>* quantizers) {
  if (phase.freeze_bn) LOADLINE_RETURN_IF_ERROR(UseRunningStatistics(model));
  if (phase.quantized.empty()) return model;
  LOADLINE_ASSIGN_OR_RETURN(const auto nodes, MatchRecipe(model, recipe));
  std::vector<QuantizeRequest> requests;
  for (const QuantizedEntry& entry : phase.quantized) {
    requests.push_back({.nodes = nodes[entry.entry],
                        .spec = *recipe.entries[entry.entry].quantize(),
                        .stage = stage.value_or(entry.stage)});
  }
  const models::Graph before = model;
  const auto added = AddFakeQuantize(model, requests);
  if (!added.ok()) {
    return OfEntry(before, recipe, phase, requests, added.status());
  }
  quantizers->insert(quantizers->end(), added->begin(), added->end());
  return model;
}

absl::StatusOr<PrunedGraph> RemoveChannels(const PhaseModel& phase,
                                           const RemovedChannels& removed) {
  std::vector<std::vector<int64_t>> by_group(phase.groups.size());
  size_t known = 0;
  for (size_t g = 0; g < phase.groups.size(); ++g) {
    const auto found = removed.find(phase.groups[g].name);
    if (found == removed.end()) continue;
    by_group[g] = found->second;
    ++known;
  }
  if (known != removed.size()) {
    return absl::InvalidArgumentError(
        "channels of groups are removed that the model does not have");
  }
  return PruneGraph(phase.model, phase.groups, by_group);
}

ChannelChoice ChoiceOf(const PruneSpec& spec, double sparsity) {
  return {.sparsity = sparsity,
          .global = spec.global,
          .max_sparsity_per_group = spec.max_sparsity_per_op,
          .round_to = spec.round_to};
}

RemovedChannels FirstChannels(const PhaseModel& model, const Recipe& recipe,
                              const RecipePhase& phase,
                              absl::Span<const double> targets) {
  RemovedChannels removed;
  for (size_t e : phase.removed) {
    std::vector<std::vector<double>> scores;
    std::vector<std::vector<bool>> gone;
    for (size_t g : model.found[e].groups) {
      const int64_t width = model.groups[g].width;
      std::vector<double>& ranks = scores.emplace_back();
      for (int64_t c = 0; c < width; ++c) {
        ranks.push_back(static_cast<double>(c) / static_cast<double>(width));
      }
      gone.emplace_back(static_cast<size_t>(width), false);
    }
    const auto chosen = ChooseChannels(
        scores, gone, ChoiceOf(*recipe.entries[e].prune(), targets[e]));
    for (size_t i = 0; i < chosen.size(); ++i) {
      if (chosen[i].empty()) continue;
      removed[model.groups[model.found[e].groups[i]].name] = chosen[i];
    }
  }
  return removed;
}

}  // namespace loadline::passes
