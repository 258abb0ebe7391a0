// Tested by tests/tools/pipeline/check_phases_test.cc.
#include "tools/pipeline/check_phases.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "passes/compress/channel_scores.h"
#include "passes/compress/phase_model.h"
#include "planner/base/status_macros.h"
#include "tools/pipeline/optimizer_states.h"
#include "tools/pipeline/plan_phases.h"
#include "tools/pipeline/plan_training_step.h"

namespace loadline::tools {
namespace {

using passes::PhaseModel;
using passes::PruneCriterion;
using passes::Recipe;

// BatchNormalizations are all that a criterion can lack.
absl::Status CheckCriterion(const PhaseModel& phase, const Recipe& recipe,
                            size_t e) {
  const passes::RecipeEntry& entry = recipe.entries[e];
  if (entry.prune()->criterion != PruneCriterion::kBnScale) {
    return absl::OkStatus();
  }
  const auto zeros =
      [&](const std::string& name) -> absl::StatusOr<std::vector<float>> {
    const auto id = phase.model.Find(name);
    if (!id.has_value()) return absl::NotFoundError(name);
    return std::vector<float>(
        static_cast<size_t>(phase.model.value(*id).type.elements()));
  };
  for (size_t g : phase.found[e].groups) {
    const auto scores =
        passes::ScoreChannels(phase.model, phase.groups[g],
                              entry.prune()->criterion, /*seed=*/0, zeros);
    if (!scores.ok()) {
      return passes::RecipeError(recipe, entry, "method.criterion",
                                 scores.status().message());
    }
  }
  return absl::OkStatus();
}

// Codebooks and scales are not cut.
absl::Status CheckStart(const Recipe& recipe,
                        const passes::RecipeEntry& quantize) {
  for (const passes::RecipeEntry& entry : recipe.entries) {
    const passes::PruneSpec* spec = entry.prune();
    if (spec == nullptr || !passes::IsStructured(spec->granularity) ||
        spec->end_step <= quantize.quantize()->start_step) {
      continue;
    }
    return passes::RecipeError(
        recipe, quantize, "process.start_step",
        absl::StrCat("quantization starts before step ", spec->end_step,
                     ", where entry '", entry.name,
                     "' removes its channels; start it then or later"));
  }
  return absl::OkStatus();
}

// Shares that are rounded to no channel at all.
absl::Status CheckRemoves(const PhaseModel& phase, const Recipe& recipe,
                          size_t e, const passes::RemovedChannels& removed) {
  const passes::RecipeEntry& entry = recipe.entries[e];
  if (entry.prune()->target.kind != passes::PruneTarget::Kind::kSparsity) {
    return absl::OkStatus();
  }
  std::vector<std::string> widths;
  for (size_t g : phase.found[e].groups) {
    if (removed.count(phase.groups[g].name) > 0) return absl::OkStatus();
    widths.push_back(absl::StrCat(phase.groups[g].width));
  }
  return passes::RecipeError(
      recipe, entry, "degree",
      absl::StrCat("sparsity and round_to together remove no channel of groups "
                   "with ",
                   absl::StrJoin(widths, ", "), " channels"));
}

// A codebook's entries move, so that zeros would not stay zero.
absl::Status CheckMaskedWeights(const PhaseModel& phase, const Recipe& recipe,
                                size_t e) {
  for (const passes::QuantizedTensor& tensor : phase.quantizers) {
    if (tensor.quantizer != passes::Quantizer::kKMeans) continue;
    for (const passes::MaskedWeight& weight : phase.found[e].weights) {
      if (weight.value != tensor.value) continue;
      return passes::RecipeError(
          recipe, recipe.entries[e], "object",
          absl::StrCat("weights of '", tensor.name,
                       "' are set to zero, and kmeans gives it a codebook, "
                       "which does not keep zeros; exclude it in one of them, "
                       "or take another quantizer"));
    }
  }
  return absl::OkStatus();
}

// Fours must stay whole where channels go that a sum takes.
absl::Status CheckFours(const Recipe& recipe) {
  const auto masks_fours = [](const passes::RecipeEntry& entry) {
    return entry.prune() != nullptr &&
           entry.prune()->granularity == passes::PruneGranularity::k2Of4;
  };
  const auto fours =
      std::find_if(recipe.entries.begin(), recipe.entries.end(), masks_fours);
  if (fours == recipe.entries.end()) return absl::OkStatus();
  for (const passes::RecipeEntry& entry : recipe.entries) {
    const passes::PruneSpec* spec = entry.prune();
    if (spec == nullptr ||
        spec->granularity != passes::PruneGranularity::kChannel ||
        spec->round_to % 4 == 0) {
      continue;
    }
    return passes::RecipeError(
        recipe, entry, "degree.round_to",
        absl::StrCat(spec->round_to, " beside entry '", fours->name,
                     "' of 2:4: give a multiple of 4, so that fours stay "
                     "whole"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<models::Graph> CheckAllPhases(models::Graph model,
                                             const Recipe& recipe,
                                             const StepFlags& flags) {
  LOADLINE_RETURN_IF_ERROR(CheckFours(recipe));
  std::vector<double> targets;
  for (const passes::RecipeEntry& entry : recipe.entries) {
    if (entry.quantize() != nullptr) {
      LOADLINE_RETURN_IF_ERROR(CheckStart(recipe, entry));
    }
    const passes::PruneSpec* spec = entry.prune();
    const bool known =
        spec != nullptr &&
        spec->target.kind == passes::PruneTarget::Kind::kSparsity;
    targets.push_back(known ? spec->target.share : 0.0);
  }
  for (const passes::RecipePhase& phase :
       passes::PhasesOf(recipe, passes::kOpenEnd)) {
    LOADLINE_ASSIGN_OR_RETURN(
        const PhaseModel at_start,
        passes::MakePhaseModel(std::move(model), recipe, phase));
    for (size_t e : phase.masked) {
      LOADLINE_RETURN_IF_ERROR(CheckCriterion(at_start, recipe, e));
      LOADLINE_RETURN_IF_ERROR(CheckMaskedWeights(at_start, recipe, e));
    }
    LOADLINE_ASSIGN_OR_RETURN(
        const models::Graph step,
        BuildStep(at_start.step_model, FlagsOfPhase(at_start, flags)));
    LOADLINE_RETURN_IF_ERROR(
        FindOptimizerStates(step, at_start.masks).status());
    const passes::RemovedChannels removed =
        passes::FirstChannels(at_start, recipe, phase, targets);
    for (size_t e : phase.removed) {
      LOADLINE_RETURN_IF_ERROR(CheckRemoves(at_start, recipe, e, removed));
    }
    LOADLINE_ASSIGN_OR_RETURN(passes::PrunedGraph pruned,
                              passes::RemoveChannels(at_start, removed));
    model = std::move(pruned.graph);
  }
  return model;
}

}  // namespace loadline::tools
