// What a phase that quantizes needs before its first step: ranges of inputs and
// outputs from calibration, first codebooks and scales.
#ifndef LOADLINE_TOOLS_PIPELINE_START_QUANTIZERS_H_
#define LOADLINE_TOOLS_PIPELINE_START_QUANTIZERS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "models/graph.h"
#include "passes/compress/add_fake_quantize.h"
#include "passes/compress/phase_model.h"
#include "passes/compress/recipe.h"
#include "tools/pipeline/replan.h"
#include "tools/pipeline/run_forward.h"

namespace loadline::tools {

// Most calibration_batches of the entries that start with the phase and that
// `counts` accepts.
int64_t CalibrationBatches(
    const passes::Recipe& recipe, const passes::RecipePhase& phase,
    absl::FunctionRef<bool(const passes::QuantizeSpec&)> counts);

// Runs the model's forward pass over calibration_batches batches for the
// entries that start with the phase, and adds the ranges that were seen to
// `state`. Does nothing if no entry that starts asks for batches.
absl::Status CalibrateQuantizers(const passes::PhaseModel& model,
                                 const passes::Recipe& recipe,
                                 const passes::RecipePhase& phase,
                                 const ForwardRun& run, RunState* state);

// Adds first codebooks, codes and scales to `state`, as passes::StartQuantizers
// computes them from it.
absl::Status StartQuantizersIn(const passes::PhaseModel& model,
                               RunState* state);

// Reads `state`, whose tensors have the types of `graph`'s values.
passes::ValueReader ReaderOf(const RunState& state, const models::Graph& graph);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_START_QUANTIZERS_H_
