// Loss and accuracy of a run under a recipe: of the model that a phase trains,
// or of what the run exports.
#ifndef LOADLINE_TOOLS_PIPELINE_EVALUATE_PHASE_H_
#define LOADLINE_TOOLS_PIPELINE_EVALUATE_PHASE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "executor/train/evaluate.h"
#include "models/graph.h"
#include "passes/compress/phase_model.h"
#include "tools/pipeline/evaluation.h"

namespace loadline::tools {

struct PhaseEvaluation {
  int64_t step = 0;   // steps done
  int64_t phase = 0;  // PhaseRecord::number; 0: of the export, if it differs
  executor::Evaluation result;
};

// `model` at the start of the phase before which `removed.size()` others have
// removed channels.
absl::StatusOr<models::Graph> WithoutRemoved(
    models::Graph model, const passes::Recipe& recipe,
    const std::vector<passes::RecipePhase>& phases,
    const std::vector<passes::RemovedChannels>& removed);

// Evaluates the model of `phase` with the contents of `state`: without what
// was `removed` before it, with masked channels zero, and quantized as trained.
// One arena within the budget of `flags`, free again when this returns.
absl::StatusOr<executor::Evaluation> EvaluatePhase(
    EvaluationFlags flags, const passes::Recipe& recipe,
    const std::vector<passes::RecipePhase>& phases,
    const std::vector<passes::RemovedChannels>& removed,
    const passes::RecipePhase& phase, const RunState& state,
    const std::atomic<bool>* stop);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_EVALUATE_PHASE_H_
