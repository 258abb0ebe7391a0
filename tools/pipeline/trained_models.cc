// A tensor that no node reads is not in the step's graph, and stays as it is in
// the file. Tested by tests/end_to_end/training_features_test.cc.
#include "tools/pipeline/trained_models.h"

#include <optional>
#include <utility>

#include "models/onnx/export.h"
#include "passes/add_optimizer.h"
#include "planner/base/status_macros.h"

namespace loadline::tools {

absl::StatusOr<ModelState> ReadModelState(const PlannedStep& step,
                                          executor::Program& program,
                                          bool averages) {
  ModelState state;
  for (const std::string& name : step.model_tensors) {
    for (const std::string& tensor : {name, passes::AverageName(name)}) {
      const std::optional<models::ValueId> id = step.graph.Find(tensor);
      if (!id.has_value() || (tensor != name && !averages)) continue;
      std::vector<std::byte> bytes(
          static_cast<size_t>(step.graph.value(*id).type.bytes()));
      LOADLINE_RETURN_IF_ERROR(
          program.ReadPersistent(tensor, absl::MakeSpan(bytes)));
      state[tensor] =
          std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    }
  }
  return state;
}

ModelState ModelStateOf(const PlannedStep& step, const RunState& state) {
  ModelState shared;
  for (const std::string& name : step.model_tensors) {
    const auto found = state.find(name);
    if (found == state.end()) continue;
    shared[name] =
        std::make_shared<const std::vector<std::byte>>(found->second);
  }
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
