// How a training step may be divided: into parts of the batch (micro-batches)
// and, within them, into segments of operators. What the flags ask for, and
// which structures a choice may try.
#ifndef LOADLINE_TOOLS_PIPELINE_STRUCTURES_H_
#define LOADLINE_TOOLS_PIPELINE_STRUCTURES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/graph.h"
#include "passes/split_operators.h"
#include "tools/cli/flags.h"
#include "tools/pipeline/planned_step.h"

namespace loadline::tools {

struct Structure {
  int64_t micro_batches = 1;
  std::vector<std::string> splits;  // CHAIN=N, as --split takes them

  bool operator==(const Structure&) const = default;
};

// PlanFlags::micro_batches: a number, or none for `auto`; 1 with --no-split.
// InvalidArgument for anything else.
absl::StatusOr<std::optional<int64_t>> MicroBatchesOf(const PlanFlags& flags);

// PlanFlags::splits; none if they are to be chosen: `--split auto`, or
// `--micro-batches auto` without --split. Empty with --no-split.
// InvalidArgument: not of this form, auto beside a chain, or the pass is
// disabled.
absl::StatusOr<std::optional<std::vector<passes::Split>>> SplitsOf(
    const PlanFlags& flags);

// Whether a structure is to be chosen.
bool IsAuto(const PlanFlags& flags);

// Logs which flags about the structure --no-split overrides.
void NoteIgnoredStructure(const PlanFlags& flags);

// The flag that asks for a choice: "--micro-batches auto" or "--split auto".
std::string AutoFlag(const PlanFlags& flags);

// InvalidArgument if the flags ask for `auto`; `why` follows the flag's name.
absl::Status RefuseAuto(const PlanFlags& flags, absl::string_view why);

// A copy of the flags with exactly this structure.
StepFlags WithStructure(const StepFlags& flags, const Structure& structure);
// A copy of the flags with so many micro-batches; segments stay as they are.
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

// The segments to try, each a list for --split: 2, 4, 8 and 16 of the kind with
// the largest chain, and of all kinds. `parts`: of the batch, which leave each
// chain fewer rows.
std::vector<std::vector<std::string>> SplitsToTry(
    const std::vector<passes::SplittableChain>& chains, int64_t parts);

// Every structure that the flags leave open and the model permits, the ones
// with fewer parts first. `plain`: the first of them, posed.
absl::StatusOr<std::vector<Structure>> PossibleStructures(
    const models::Graph& model, const StepFlags& flags,
    const PlannedStep& plain);

// The error with more at the end of its message; its figures (payloads) stay.
absl::Status Appended(const absl::Status& status, absl::string_view more);

// The error of a plan that was not found, with flags that make the node smaller
// where the bytes do not suffice: the optimizer's, if that is an update, else
// those of the activations. `auto` is named where micro-batches may be
// possible: the batch divides into parts, and no running statistics are kept of
// it. Any other status is returned as it is.
absl::Status WithAdvice(const absl::Status& status, const PlannedStep& step,
                        const StepFlags& flags);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_STRUCTURES_H_
