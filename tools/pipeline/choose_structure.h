// `--micro-batches auto` and `--split auto`: of a model's training steps in
// parts of the batch and segments of operators, the one whose plan is fastest
// within the budget.
#ifndef LOADLINE_TOOLS_PIPELINE_CHOOSE_STRUCTURE_H_
#define LOADLINE_TOOLS_PIPELINE_CHOOSE_STRUCTURE_H_

#include <atomic>

#include "absl/status/statusor.h"
#include "executor/device/device.h"
#include "tools/pipeline/plan_training_step.h"
#include "tools/pipeline/planned_step.h"
#include "tools/pipeline/structures.h"

namespace loadline::tools {

// PlanTrainingStep for `auto`. A budget in percent is a share of the plain
// step's peak. `tried` of the result says what was found for every structure.
// A structure is searched unless a bound excludes it: its proven floor of bytes
// is above the budget, or its operators alone take as long as the best plan
// found. Of large steps only those with the best estimates are searched. So the
// result is at least as fast as every single structure for small steps, and it
// is the same for the same input.
// Errors: as PlanTrainingStep.
absl::StatusOr<PlannedStep> PlanBestStructure(
    const StepFlags& flags, executor::Device& device,
    const std::atomic<bool>* cancel, const BeforeMeasuring& check = {});

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_CHOOSE_STRUCTURE_H_
