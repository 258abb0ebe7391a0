// Calibration is a program of its own: the forward pass with observers, whose
// updates are all that it leaves. Tested by tests/end_to_end/quantize_test.cc.
#include "tools/pipeline/start_quantizers.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/program/program.h"
#include "passes/training_pipeline.h"
#include "planner/base/status_macros.h"
#include "planner/solve/solve.h"
#include "spdlog/spdlog.h"
#include "tools/pipeline/carry_state.h"
#include "tools/pipeline/plan_request.h"
#include "tools/pipeline/plan_training_step.h"

namespace loadline::tools {
namespace {

// Most batches that an entry which starts asks for.
int64_t BatchesOf(const passes::Recipe& recipe,
                  const passes::RecipePhase& phase) {
  int64_t batches = 0;
  for (const passes::QuantizedEntry& entry : phase.quantized) {
    if (!entry.starts) continue;
    batches = std::max(
        batches, recipe.entries[entry.entry].quantize()->calibration_batches);
  }
  return batches;
}

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

absl::Status CalibrateQuantizers(
    const passes::PhaseModel& model, const passes::Recipe& recipe,
    const passes::RecipePhase& phase, const StepFlags& flags,
    const planner::Machine& machine, const CalibrationData& batches,
    executor::Device& device, const std::atomic<bool>* cancel,
    RunState* state) {
  const int64_t count = BatchesOf(recipe, phase);
  if (count == 0) return absl::OkStatus();
  LOADLINE_ASSIGN_OR_RETURN(models::Graph graph,
                            CalibrationGraph(model, recipe, phase));
  if (graph.updates.empty()) return absl::OkStatus();  // only weights
  spdlog::info("calibration over {} batches", count);
  LOADLINE_RETURN_IF_ERROR(SetContents(*state, &graph));
  LOADLINE_ASSIGN_OR_RETURN(
      const planner::Problem problem,
      PoseStep(graph, flags.model.model, machine, device));
  LOADLINE_ASSIGN_OR_RETURN(planner::Plan plan,
                            planner::KeepEverything(problem));
  LOADLINE_ASSIGN_OR_RETURN(plan, SolveFor(problem, flags, plan, cancel));
  LOADLINE_ASSIGN_OR_RETURN(const auto program,
                            executor::Load(graph, problem, plan, device));
  // The target is no input of this graph.
  executor::DataSet inputs = {.examples = batches.data->examples};
  for (models::ValueId id : graph.inputs) {
    for (const executor::Column& column : batches.data->columns) {
      if (column.name == graph.value(id).name) inputs.columns.push_back(column);
    }
  }
  const std::optional<int64_t> batch = executor::BatchOf(graph);
  if (!batch.has_value() || inputs.columns.size() != graph.inputs.size()) {
    return absl::InternalError("calibration has other inputs than the step");
  }
  LOADLINE_RETURN_IF_ERROR(executor::CheckBytes(inputs, graph));
  LOADLINE_ASSIGN_OR_RETURN(
      const auto batcher,
      executor::Batcher::Create(inputs, *batch, batches.seed, batches.shuffle));
  for (int64_t b = 0; b < count; ++b) {
    if (cancel != nullptr && cancel->load(std::memory_order_relaxed)) {
      return absl::CancelledError("interrupted during calibration");
    }
    LOADLINE_ASSIGN_OR_RETURN(const auto rows, batcher->Batch(b));
    LOADLINE_RETURN_IF_ERROR(program->Run({}, rows));
  }
  for (const auto& [old, next] : graph.updates) {
    const models::Value& value = graph.value(old);
    std::vector<std::byte> contents(static_cast<size_t>(value.type.bytes()));
    LOADLINE_RETURN_IF_ERROR(
        program->ReadPersistent(value.name, absl::MakeSpan(contents)));
    (*state)[value.name] = std::move(contents);
  }
  return absl::OkStatus();
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
