// Plans every phase of a recipe without training.
#ifndef LOADLINE_TOOLS_PIPELINE_PLAN_PHASES_H_
#define LOADLINE_TOOLS_PIPELINE_PLAN_PHASES_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/device/device.h"
#include "models/graph.h"
#include "passes/compress/phase_model.h"
#include "passes/compress/recipe.h"
#include "tools/pipeline/phase_record.h"
#include "tools/pipeline/planned_step.h"
#include "tools/pipeline/recipe_file.h"

namespace loadline::tools {

// The flags of a run by the recipe, which may ask for optimizer states of 8
// bits.
StepFlags FlagsOfRecipe(const passes::Recipe& recipe, StepFlags flags);

// The flags with which a phase's step is built: with its masks, and without
// weight decay of trained scales, which would pull each of these logarithms
// toward a scale of 1.
StepFlags FlagsOfPhase(const passes::PhaseModel& model, StepFlags flags);

// Poses and plans the training step of a phase's model, with its masks.
absl::StatusOr<PlannedStep> PlanPhase(const passes::PhaseModel& model,
                                      StepFlags flags, executor::Device& device,
                                      const std::atomic<bool>* cancel);

// All phases have the budget of the first one in bytes: a share of what it
// needs is not a share of what a later one needs. Sets --budget accordingly
// once `first` is planned; without a --budget each phase keeps everything.
absl::Status KeepBudgetOf(const PlannedStep& first, StepFlags* flags);

struct PlannedPhases {
  std::vector<PhaseRecord> phases;
  std::vector<double> targets;        // sparsity at the end, by entry
  std::vector<std::string> left_out;  // groups that the recipe does not prune
};

// Which channels go is not known, their number is: see passes::FirstChannels.
// Phases of no steps are left out. `steps`: of the run; passes::kOpenEnd: not
// known. Errors: those of ResolveTargets and SolveFor.
absl::StatusOr<PlannedPhases> PlanPhases(models::Graph model,
                                         const passes::Recipe& recipe,
                                         int64_t steps, StepFlags flags,
                                         executor::Device& device,
                                         const std::atomic<bool>* cancel);

// The steps of a run and of an epoch. `data`: an .npz file, or empty; `model`:
// as imported. Steps that are not given are those of `epochs`, or 0 where the
// data is not known.
absl::StatusOr<RecipeClock> ClockFor(const StepFlags& flags,
                                     const models::Graph& model, int64_t steps,
                                     int64_t epochs);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_PLAN_PHASES_H_
