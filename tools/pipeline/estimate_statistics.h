// Running statistics of the network whose weights come from codebooks.
#ifndef LOADLINE_TOOLS_PIPELINE_ESTIMATE_STATISTICS_H_
#define LOADLINE_TOOLS_PIPELINE_ESTIMATE_STATISTICS_H_

#include "absl/status/status.h"
#include "passes/compress/phase_model.h"
#include "passes/compress/recipe.h"
#include "passes/compress/recipe_phases.h"
#include "tools/pipeline/run_forward.h"

namespace loadline::tools {

// A codebook's entries are means of weights, so sums of weighted inputs vary
// less than before. Normalizations that keep running statistics would divide by
// the old, larger spread: their statistics in `state` become the mean of those
// of calibration_batches batches, with every tensor quantized. Does nothing if
// no codebook starts with the phase, or the recipe froze statistics before.
// `state`: that after StartQuantizersIn.
absl::Status EstimateStatistics(const passes::PhaseModel& model,
                                const passes::Recipe& recipe,
                                const passes::RecipePhase& phase,
                                const ForwardRun& run, RunState* state);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_ESTIMATE_STATISTICS_H_
