// Tested by tests/end_to_end/recipe_test.cc and quantize_test.cc there.
#include "tools/pipeline/evaluate_phase.h"

#include <memory>
#include <utility>

#include "planner/base/status_macros.h"

namespace loadline::tools {

absl::StatusOr<models::Graph> WithoutRemoved(
    models::Graph model, const passes::Recipe& recipe,
    const std::vector<passes::RecipePhase>& phases,
    const std::vector<passes::RemovedChannels>& removed) {
  for (size_t p = 0; p < removed.size(); ++p) {
    LOADLINE_ASSIGN_OR_RETURN(
        const passes::PhaseModel at_start,
        passes::MakePhaseModel(std::move(model), recipe, phases[p]));
    LOADLINE_ASSIGN_OR_RETURN(passes::PrunedGraph pruned,
                              passes::RemoveChannels(at_start, removed[p]));
    model = std::move(pruned.graph);
  }
  return model;
}

absl::StatusOr<executor::Evaluation> EvaluatePhase(
    EvaluationFlags flags, const passes::Recipe& recipe,
    const std::vector<passes::RecipePhase>& phases,
    const std::vector<passes::RemovedChannels>& removed,
    const passes::RecipePhase& phase, const RunState& state,
    const std::atomic<bool>* stop) {
  flags.rewrite = [&](models::Graph training) -> absl::StatusOr<models::Graph> {
    LOADLINE_ASSIGN_OR_RETURN(
        models::Graph model,
        WithoutRemoved(std::move(training), recipe, phases, removed));
    passes::RecipePhase frozen = phase;
    frozen.freeze_bn = true;
    std::vector<passes::QuantizedTensor> quantizers;
    return passes::QuantizeModel(std::move(model), recipe, frozen,
                                 passes::QuantizeStage::kFrozen, &quantizers);
  };
  LOADLINE_ASSIGN_OR_RETURN(const auto plan, EvaluationPlan::Make(flags));
  return plan->Run(&state, stop);
}

}  // namespace loadline::tools
