// Calibration is a program of its own: the forward pass with observers, whose
// updates are all that it leaves. Tested by tests/end_to_end/quantize_test.cc.
#include "tools/pipeline/start_quantizers.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "passes/training_pipeline.h"
#include "planner/base/status_macros.h"
#include "spdlog/spdlog.h"
#include "tools/pipeline/carry_state.h"

namespace loadline::tools {
namespace {

// Entries that start only watch; others are as they are.
absl::StatusOr<models::Graph> CalibrationGraph(const passes::PhaseModel& model,
                                               const passes::Recipe& recipe,
                                               passes::RecipePhase phase) {
  phase.freeze_bn = true;
  for (passes::QuantizedEntry& entry : phase.quantized) {
    entry.stage = entry.starts ? passes::QuantizeStage::kCalibrate
                               : passes::QuantizeStage::kFrozen;
  }
  std::vector<passes::QuantizedTensor> quantizers;
  LOADLINE_ASSIGN_OR_RETURN(
      models::Graph graph,
      passes::QuantizeModel(model.model, recipe, phase, {}, &quantizers));
  return passes::BuildCalibration(std::move(graph), {});
}

}  // namespace

int64_t CalibrationBatches(
    const passes::Recipe& recipe, const passes::RecipePhase& phase,
    absl::FunctionRef<bool(const passes::QuantizeSpec&)> counts) {
  int64_t batches = 0;
  for (const passes::QuantizedEntry& entry : phase.quantized) {
    const passes::QuantizeSpec& spec = *recipe.entries[entry.entry].quantize();
    if (entry.starts && counts(spec)) {
      batches = std::max(batches, spec.calibration_batches);
    }
  }
  return batches;
}

absl::Status CalibrateQuantizers(const passes::PhaseModel& model,
                                 const passes::Recipe& recipe,
                                 const passes::RecipePhase& phase,
                                 const ForwardRun& run, RunState* state) {
  const int64_t count = CalibrationBatches(
      recipe, phase, [](const passes::QuantizeSpec&) { return true; });
  if (count == 0) return absl::OkStatus();
  LOADLINE_ASSIGN_OR_RETURN(models::Graph graph,
                            CalibrationGraph(model, recipe, phase));
  if (graph.updates.empty()) return absl::OkStatus();  // only weights
  spdlog::info("calibration over {} batches", count);
  return RunForward(std::move(graph), *state, count, run,
                    [state](const RunState& updated) {
                      for (const auto& [name, contents] : updated) {
                        (*state)[name] = contents;
                      }
                    });
}

passes::ValueReader ReaderOf(const RunState& state,
                             const models::Graph& graph) {
  return [&state,
          &graph](absl::string_view name) -> std::optional<models::Tensor> {
    const auto found = state.find(std::string(name));
    const std::optional<models::ValueId> id = graph.Find(name);
    if (found == state.end()) {
      // A weight that is not trained is no part of the state.
      const bool constant = id.has_value() && graph.value(*id).kind ==
                                                  models::ValueKind::kConstant;
      return constant ? graph.value(*id).initial : std::nullopt;
    }
    // Ranges are of another graph, the one that was calibrated.
    models::TensorType type = {models::DType::kF32, {}};
    if (id.has_value()) type = graph.value(*id).type;
    if (static_cast<int64_t>(found->second.size()) != type.bytes()) {
      return std::nullopt;
    }
    return models::MakeTensor(type, found->second.data());
  };
}

absl::Status StartQuantizersIn(const passes::PhaseModel& model,
                               RunState* state) {
  models::Graph graph = model.step_model;
  LOADLINE_RETURN_IF_ERROR(passes::StartQuantizers(
      model.quantizers, ReaderOf(*state, graph), graph));
  const RunState started = InitialState(graph);
  for (const passes::QuantizedTensor& tensor : model.quantizers) {
    for (const char* suffix :
         {".codebook", ".codes", ".log_scale", ".zero_point"}) {
      const auto found = started.find(tensor.name + suffix);
      if (found != started.end()) state->emplace(found->first, found->second);
    }
  }
  return absl::OkStatus();
}

}  // namespace loadline::tools
