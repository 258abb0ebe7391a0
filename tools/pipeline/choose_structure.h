// `--micro-batches auto`: of a model's training steps in 1, 2, 4, ... parts of
// the batch, the one whose plan is fastest within the budget.
#ifndef LOADLINE_TOOLS_PIPELINE_CHOOSE_STRUCTURE_H_
#define LOADLINE_TOOLS_PIPELINE_CHOOSE_STRUCTURE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "executor/device/device.h"
#include "models/graph.h"
#include "tools/pipeline/plan_training_step.h"
#include "tools/pipeline/planned_step.h"

namespace loadline::tools {

// PlanFlags::micro_batches: a number, or none for `auto`; 1 with --no-split.
// InvalidArgument for anything else.
absl::StatusOr<std::optional<int64_t>> MicroBatchesOf(const PlanFlags& flags);

bool IsAuto(const PlanFlags& flags);

// InvalidArgument if the flags ask for `auto`; `why` follows the flag's name.
absl::Status RefuseAuto(const PlanFlags& flags, absl::string_view why);
// InvalidArgument if the flags ask for micro-batches of a problem file, whose
// step is what it is.
absl::Status CheckForProblemFile(const PlanFlags& flags);

// A copy of the flags with so many micro-batches.
StepFlags WithMicroBatches(const StepFlags& flags, int64_t parts);

// The numbers of micro-batches to try for a batch that divides into `most`
// parts, in rising order: 1 and divisors of `most`, each at least one and a
// half times the one before. Limited so that a step has at most about 20,000
// nodes, given those of the step in one part.
std::vector<int64_t> MicroBatchesToTry(int64_t most, size_t nodes);

// Those of them that the model permits; the reason why not is logged. `plain`
// is the step in one piece.
absl::StatusOr<std::vector<int64_t>> PossibleMicroBatches(
    const models::Graph& model, const StepFlags& flags,
    const PlannedStep& plain);

// The error of a plan that was not found, with the advice to try `auto` where
// micro-batches may be possible: the batch of `step` divides into parts, and no
// running statistics are kept of it. Any other status is returned as it is.
absl::Status WithAdvice(const absl::Status& status, const models::Graph& step);

// PlanTrainingStep for `auto`. A budget in percent is a share of the plain
// step's peak. `tried` of the result says what was found for every structure.
// A structure is searched unless a bound excludes it: its proven floor of bytes
// is above the budget, or its operators alone take as long as the best plan
// found. All are searched shortly first; large steps are searched in full only
// for the two best. So the result is at least as fast as every single structure
// for small steps, and it is the same for the same input. Errors: as
// PlanTrainingStep.
absl::StatusOr<PlannedStep> PlanBestStructure(
    const StepFlags& flags, executor::Device& device,
    const std::atomic<bool>* cancel, const BeforeMeasuring& check = {});

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_CHOOSE_STRUCTURE_H_
