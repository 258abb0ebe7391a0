// A tensor that no node reads is not in the step's graph, and stays as it is in
// the file. Tested by tests/end_to_end/training_features_test.cc.
#include "tools/pipeline/trained_models.h"

#include <optional>
#include <utility>

#include "models/onnx/export.h"
#include "passes/add_optimizer.h"
#include "planner/base/status_macros.h"

namespace loadline::tools {

namespace {

absl::Status Merge(const PlannedStep& step, const OptionalLora& lora,
                   bool averages, const TensorReader& read, ModelState* state) {
  if (!lora.has_value()) return absl::OkStatus();
  LOADLINE_ASSIGN_OR_RETURN(auto merged,
                            MergedWeights(step.graph, *lora, averages, read));
  for (auto& [name, bytes] : merged) {
    (*state)[name] =
        std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  }
  return absl::OkStatus();
}

}  // namespace

TensorReader ReaderOfState(const RunState& state) {
  return
      [&state](
          const std::string& name) -> absl::StatusOr<std::vector<std::byte>> {
        const auto found = state.find(name);
        if (found == state.end()) return std::vector<std::byte>();
        return found->second;
      };
}

TensorReader ReaderOfProgram(const models::Graph& step,
                             executor::Program& program) {
  return
      [&step, &program](
          const std::string& name) -> absl::StatusOr<std::vector<std::byte>> {
        const std::optional<models::ValueId> id = step.Find(name);
        if (!id.has_value()) return std::vector<std::byte>();
        std::vector<std::byte> bytes(
            static_cast<size_t>(step.value(*id).type.bytes()));
        LOADLINE_RETURN_IF_ERROR(
            program.ReadPersistent(name, absl::MakeSpan(bytes)));
        return bytes;
      };
}

absl::StatusOr<ModelState> ReadModelState(const PlannedStep& step,
                                          executor::Program& program,
                                          bool averages,
                                          const OptionalLora& lora) {
  ModelState state;
  const TensorReader read = ReaderOfProgram(step.graph, program);
  for (const std::string& name : step.model_tensors) {
    for (const std::string& tensor : {name, passes::AverageName(name)}) {
      if (!step.graph.Find(tensor).has_value() || (tensor != name && !averages))
        continue;
      LOADLINE_ASSIGN_OR_RETURN(std::vector<std::byte> bytes, read(tensor));
      state[tensor] =
          std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    }
  }
  LOADLINE_RETURN_IF_ERROR(Merge(step, lora, averages, read, &state));
  return state;
}

absl::StatusOr<ModelState> ModelStateOf(const PlannedStep& step,
                                        const RunState& state,
                                        const OptionalLora& lora) {
  ModelState shared;
  for (const std::string& name : step.model_tensors) {
    const auto found = state.find(name);
    if (found == state.end()) continue;
    shared[name] =
        std::make_shared<const std::vector<std::byte>>(found->second);
  }
  LOADLINE_RETURN_IF_ERROR(
      Merge(step, lora, /*averages=*/false, ReaderOfState(state), &shared));
  return shared;
}

absl::Status WriteModel(const PlannedStep& step, const ModelState& state,
                        const std::string& original, bool average,
                        const std::string& path) {
  std::map<std::string, models::Tensor> tensors;
  for (const std::string& name : step.model_tensors) {
    auto found = average ? state.find(passes::AverageName(name)) : state.end();
    if (found == state.end()) found = state.find(name);
    const std::optional<models::ValueId> id = step.graph.Find(name);
    if (found == state.end() || !id.has_value()) continue;
    tensors.emplace(name,
                    models::Tensor{step.graph.value(*id).type, found->second});
  }
  return models::ExportTrained(original, std::move(tensors), path);
}

}  // namespace loadline::tools
