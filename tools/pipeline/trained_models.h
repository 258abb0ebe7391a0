// Model files with the weights that a run has reached.
#ifndef LOADLINE_TOOLS_PIPELINE_TRAINED_MODELS_H_
#define LOADLINE_TOOLS_PIPELINE_TRAINED_MODELS_H_

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/program/program.h"
#include "tools/pipeline/lora.h"
#include "tools/pipeline/planned_step.h"
#include "tools/pipeline/replan.h"

namespace loadline::tools {

// With adapters (passes/add_lora.h), `lora` says which, and weights are merged
// with them.

// Contents of tensors by name; an exported model shares them.
using OptionalLora = std::optional<passes::LoraOptions>;
using ModelState =
    std::map<std::string, std::shared_ptr<const std::vector<std::byte>>>;

// The model's tensors in the program, without optimizer state; with their
// averages (passes/add_optimizer.h) if `averages`.
absl::StatusOr<ModelState> ReadModelState(const PlannedStep& step,
                                          executor::Program& program,
                                          bool averages,
                                          const OptionalLora& lora);

// The same of a program's whole state, without averages.
absl::StatusOr<ModelState> ModelStateOf(const PlannedStep& step,
                                        const RunState& state,
                                        const OptionalLora& lora);

// Reads tensors of a program's state, or of a program.
TensorReader ReaderOfState(const RunState& state);
TensorReader ReaderOfProgram(const models::Graph& step,
                             executor::Program& program);

// The model at `original` with these tensors, and with averages in place of
// those that have some if `average`. Errors: those of models::ExportTrained.
absl::Status WriteModel(const PlannedStep& step, const ModelState& state,
                        const std::string& original, bool average,
                        const std::string& path);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_TRAINED_MODELS_H_
