// Tested by tests/tools/pipeline/estimate_statistics_test.cc and
// tests/end_to_end/quantize_test.cc.
#include "tools/pipeline/run_forward.h"

#include <optional>
#include <utility>
#include <vector>

#include "executor/program/program.h"
#include "planner/base/status_macros.h"
#include "planner/solve/solve.h"
#include "tools/pipeline/carry_state.h"
#include "tools/pipeline/plan_request.h"
#include "tools/pipeline/plan_training_step.h"

namespace loadline::tools {
namespace {

// The columns that the graph reads: the target is none of its inputs.
executor::DataSet InputsOf(const models::Graph& graph,
                           const executor::DataSet& data) {
  executor::DataSet inputs = {.examples = data.examples};
  for (models::ValueId id : graph.inputs) {
    for (const executor::Column& column : data.columns) {
      if (column.name == graph.value(id).name) inputs.columns.push_back(column);
    }
  }
  return inputs;
}

absl::StatusOr<RunState> ReadUpdated(executor::Program& program,
                                     const models::Graph& graph) {
  RunState updated;
  for (const auto& [old, next] : graph.updates) {
    const models::Value& value = graph.value(old);
    std::vector<std::byte> contents(static_cast<size_t>(value.type.bytes()));
    LOADLINE_RETURN_IF_ERROR(
        program.ReadPersistent(value.name, absl::MakeSpan(contents)));
    updated[value.name] = std::move(contents);
  }
  return updated;
}

}  // namespace

absl::Status RunForward(models::Graph graph, const RunState& state,
                        int64_t batches, const ForwardRun& run,
                        const std::function<void(const RunState&)>& ran) {
  LOADLINE_RETURN_IF_ERROR(SetContents(state, &graph));
  // An arena of its own, free again at the end.
  LOADLINE_ASSIGN_OR_RETURN(const auto device, run.device());
  LOADLINE_ASSIGN_OR_RETURN(
      const planner::Problem problem,
      PoseStep(graph, run.flags.model.model, run.machine, *device));
  LOADLINE_ASSIGN_OR_RETURN(planner::Plan plan,
                            planner::KeepEverything(problem));
  LOADLINE_ASSIGN_OR_RETURN(plan,
                            SolveFor(problem, run.flags, plan, run.cancel));
  LOADLINE_ASSIGN_OR_RETURN(const auto program,
                            executor::Load(graph, problem, plan, *device));
  const executor::DataSet inputs = InputsOf(graph, run.data);
  const std::optional<int64_t> batch = executor::BatchOf(graph);
  if (!batch.has_value() || inputs.columns.size() != graph.inputs.size()) {
    // Of another output than the loss is taken of.
    return absl::InvalidArgumentError(
        "calibration runs the whole model, which has inputs that the loss does "
        "not depend on; export it without them");
  }
  LOADLINE_RETURN_IF_ERROR(executor::CheckBytes(inputs, graph));
  LOADLINE_ASSIGN_OR_RETURN(
      const auto batcher,
      executor::Batcher::Create(inputs, *batch, run.seed, run.shuffle));
  for (int64_t b = 0; b < batches; ++b) {
    if (run.cancel != nullptr && run.cancel->load(std::memory_order_relaxed)) {
      return absl::CancelledError("interrupted during calibration");
    }
    LOADLINE_ASSIGN_OR_RETURN(const auto rows, batcher->Batch(b));
    LOADLINE_RETURN_IF_ERROR(program->Run({}, rows));
    LOADLINE_ASSIGN_OR_RETURN(const RunState updated,
                              ReadUpdated(*program, graph));
    ran(updated);
  }
  return absl::OkStatus();
}

}  // namespace loadline::tools
