// What a phase that quantizes needs before its first step: ranges of inputs and
// outputs from calibration, first codebooks and scales.
#ifndef LOADLINE_TOOLS_PIPELINE_START_QUANTIZERS_H_
#define LOADLINE_TOOLS_PIPELINE_START_QUANTIZERS_H_

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "executor/device/device.h"
#include "executor/train/data.h"
#include "models/graph.h"
#include "passes/compress/add_fake_quantize.h"
#include "passes/compress/phase_model.h"
#include "passes/compress/recipe.h"
#include "tools/pipeline/planned_step.h"
#include "tools/pipeline/replan.h"

namespace loadline::tools {

// Batches of the training data, as the run draws them from its first step on.
struct CalibrationData {
  const executor::DataSet* data = nullptr;
  uint64_t seed = 0;
  bool shuffle = true;
};

// Runs the model's forward pass, planned within the flags' budget, over
// calibration_batches batches for the entries that start with the phase, and
// adds the ranges that were seen to `state`. `machine`: prices for the plan.
// `device` has no arena; its arena lives until the device does. Does nothing if
// no entry that starts asks for batches.
absl::Status CalibrateQuantizers(
    const passes::PhaseModel& model, const passes::Recipe& recipe,
    const passes::RecipePhase& phase, const StepFlags& flags,
    const planner::Machine& machine, const CalibrationData& batches,
    executor::Device& device, const std::atomic<bool>* cancel, RunState* state);

// Adds first codebooks, codes and scales to `state`, as passes::StartQuantizers
// computes them from it.
absl::Status StartQuantizersIn(const passes::PhaseModel& model,
                               RunState* state);

// Reads `state`, whose tensors have the types of `graph`'s values.
passes::ValueReader ReaderOf(const RunState& state, const models::Graph& graph);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_START_QUANTIZERS_H_
