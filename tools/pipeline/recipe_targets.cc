// Fewer channels never need more MACs or bytes, so bisection finds the smallest
// sparsity. Tested by tests/tools/pipeline/plan_phases_test.cc.
#include "tools/pipeline/recipe_targets.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "passes/compress/model_size.h"
#include "passes/compress/phase_model.h"
#include "passes/compress/recipe_phases.h"
#include "passes/make_problem.h"
#include "planner/base/status_macros.h"
#include "planner/solve/solve.h"
#include "tools/cli/units.h"
#include "tools/pipeline/machine_profile.h"
#include "tools/pipeline/plan_phases.h"
#include "tools/pipeline/plan_training_step.h"

namespace loadline::tools {
namespace {

using passes::PruneTarget;

constexpr int64_t kSparsitySteps = 256;

// The step of the model with everything kept.
absl::StatusOr<planner::Plan> KeepEverythingIn(const models::Graph& model,
                                               const StepFlags& flags,
                                               executor::Device& device) {
  LOADLINE_ASSIGN_OR_RETURN(const models::Graph graph, BuildStep(model, flags));
  LOADLINE_ASSIGN_OR_RETURN(const planner::Machine machine,
                            LoadProfile(flags.plan.device, flags.plan.machine));
  LOADLINE_ASSIGN_OR_RETURN(
      const planner::Problem problem,
      PoseStep(graph, flags.model.model, machine, device));
  return planner::KeepEverything(problem);
}

// Whether an entry's target is a sparsity, or none at all.
bool IsSparsity(const passes::RecipeEntry& entry) {
  return entry.prune() == nullptr ||
         entry.prune()->target.kind == PruneTarget::Kind::kSparsity;
}

class Resolver {
 public:
  Resolver(const models::Graph& model, const passes::Recipe& recipe,
           int64_t steps, const StepFlags& flags, executor::Device& device)
      : model_(model),
        recipe_(recipe),
        flags_(flags),
        device_(device),
        phases_(passes::PhasesOf(recipe, steps)),
        targets_(recipe.entries.size(), 0.0) {}

  absl::StatusOr<std::vector<double>> Run() {
    for (size_t e = 0; e < recipe_.entries.size(); ++e) {
      const passes::PruneSpec* spec = recipe_.entries[e].prune();
      if (spec != nullptr && IsSparsity(recipe_.entries[e])) {
        targets_[e] = spec->target.share;
      }
    }
    for (const passes::RecipePhase& phase : phases_) {
      for (size_t e : phase.removed) {
        if (IsSparsity(recipe_.entries[e])) continue;
        LOADLINE_RETURN_IF_ERROR(Resolve(e));
      }
    }
    return targets_;
  }

 private:
  absl::Status Resolve(size_t e) {
    const passes::RecipeEntry& entry = recipe_.entries[e];
    const PruneTarget& target = entry.prune()->target;
    const bool macs = target.kind == PruneTarget::Kind::kMacs;
    const std::string key = macs ? "degree.macs" : "degree.peak_bytes";
    if (entry.prune()->global) {
      return passes::RecipeError(
          recipe_, entry, key,
          "needs scope local: with a global scope the widths are not known "
          "before training");
    }
    LOADLINE_ASSIGN_OR_RETURN(const int64_t whole, Measure(model_, macs));
    const int64_t limit = target.count > 0
                              ? target.count
                              : static_cast<int64_t>(std::floor(
                                    target.share * static_cast<double>(whole)));
    const auto most = static_cast<int64_t>(
        std::floor(entry.prune()->max_sparsity_per_op * kSparsitySteps));
    LOADLINE_ASSIGN_OR_RETURN(const int64_t least,
                              At(e, static_cast<double>(most), macs));
    const auto text = [&](int64_t count) {
      return macs ? absl::StrCat(FormatCount(count), " MACs")
                  : FormatBytes(count);
    };
    if (least > limit) {
      return passes::RecipeError(
          recipe_, entry, key,
          absl::StrCat(text(limit), " cannot be reached: of ", text(whole),
                       ", ", text(least),
                       " are left with as few channels as the entry allows"));
    }
    int64_t low = -1;  // too much is left
    int64_t high = most;
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      LOADLINE_ASSIGN_OR_RETURN(const int64_t left,
                                At(e, static_cast<double>(middle), macs));
      (left <= limit ? high : low) = middle;
    }
    if (high == 0) {
      return passes::RecipeError(
          recipe_, entry, key,
          absl::StrCat(text(limit),
                       ": no more is left without the entry, so it removes "
                       "nothing"));
    }
    targets_[e] = static_cast<double>(high) / kSparsitySteps;
    return absl::OkStatus();
  }

  // What is left from the end of the entry's window on with `parts` of
  // kSparsitySteps: the most bytes of any phase, because quantizers keep
  // rounded tensors too.
  absl::StatusOr<int64_t> At(size_t e, double parts, bool macs) {
    std::vector<double> targets = targets_;
    targets[e] = parts / kSparsitySteps;
    models::Graph model = model_;
    int64_t most = 0;
    bool over = false;
    for (const passes::RecipePhase& phase : phases_) {
      LOADLINE_ASSIGN_OR_RETURN(
          const passes::PhaseModel at_start,
          passes::MakePhaseModel(std::move(model), recipe_, phase));
      if (over && phase.first_step < phase.end_step) {
        LOADLINE_ASSIGN_OR_RETURN(
            const planner::Plan plan,
            KeepEverythingIn(at_start.step_model,
                             FlagsOfPhase(at_start, flags_), device_));
        most = std::max(most, plan.arena_bytes);
      }
      LOADLINE_ASSIGN_OR_RETURN(
          passes::PrunedGraph pruned,
          passes::RemoveChannels(
              at_start,
              passes::FirstChannels(at_start, recipe_, phase, targets)));
      model = std::move(pruned.graph);
      if (over || phase.end_step < recipe_.entries[e].prune()->end_step) {
        continue;
      }
      over = true;
      LOADLINE_ASSIGN_OR_RETURN(most, Measure(model, macs));
      if (macs) break;
    }
    return most;
  }

  absl::StatusOr<int64_t> Measure(const models::Graph& model, bool macs) {
    if (macs) return passes::SizeOfModel(model).macs;
    // With the gaps between buffers, so that the target bounds what is taken.
    LOADLINE_ASSIGN_OR_RETURN(const planner::Plan plan,
                              KeepEverythingIn(model, flags_, device_));
    return plan.arena_bytes;
  }

  const models::Graph& model_;
  const passes::Recipe& recipe_;
  const StepFlags& flags_;
  executor::Device& device_;
  const std::vector<passes::RecipePhase> phases_;
  std::vector<double> targets_;
};

}  // namespace

absl::StatusOr<int64_t> KeepEverythingBytes(const models::Graph& model,
                                            const StepFlags& flags,
                                            executor::Device& device) {
  LOADLINE_ASSIGN_OR_RETURN(const planner::Plan plan,
                            KeepEverythingIn(model, flags, device));
  return plan.predicted.peak_bytes;
}

absl::StatusOr<std::vector<double>> ResolveTargets(const models::Graph& model,
                                                   const passes::Recipe& recipe,
                                                   int64_t steps,
                                                   const StepFlags& flags,
                                                   executor::Device& device) {
  return Resolver(model, recipe, steps, flags, device).Run();
}

}  // namespace loadline::tools
