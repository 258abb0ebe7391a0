// Tested by tests/end_to_end.
#include "tools/verbs/run_evaluated.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "executor/train/checkpoint.h"
#include "executor/train/data_digest.h"
#include "planner/base/status_macros.h"
#include "tools/cli/device_names.h"
#include "tools/pipeline/evaluated_run.h"
#include "tools/pipeline/lora.h"
#include "tools/pipeline/trained_models.h"
#include "tools/verbs/run_notes.h"

namespace loadline::tools {

absl::StatusOr<std::unique_ptr<EvaluationPlan>> PlanEvaluation(
    const RunFlags& flags, const PlannedStep& step) {
  EvaluationFlags evaluation = {flags.step.model, flags.step.loss,
                                flags.step.plan};
  evaluation.loss.data = flags.training.eval_data;
  const planner::Machine& machine = step.machine;
  evaluation.plan.budget = absl::StrCat(
      step.plan.budget_bytes +
          (flags.step.plan.device == kCuda ? machine.reserved_bytes : 0),
      "B");
  return EvaluationPlan::Make(evaluation);
}

absl::StatusOr<executor::TrainResult> TrainWithEvaluations(
    const RunFlags& flags, const executor::DataSet& data,
    const std::atomic<bool>* stop, const ModelFiles& files,
    EvaluationPlan& evaluation, executor::MetricsFile* metrics,
    PlannedStep* step, Running* running) {
  absl::Status unwritten;
  EvaluatedRunOptions options;
  LOADLINE_ASSIGN_OR_RETURN(options.steps, StepsFor(flags, data, step->graph));
  options.patience = flags.training.patience;
  const int64_t batch = *executor::BatchOf(step->graph);
  options.every = flags.training.eval_every > 0
                      ? flags.training.eval_every
                      : std::max<int64_t>(data.examples / batch, 1);
  if (flags.resume) {
    LOADLINE_ASSIGN_OR_RETURN(
        const executor::RunPosition position,
        executor::LoadCheckpoint(flags.checkpoint, *running->program));
    options.first_step = position.step;
    options.history = EvaluationHistory::FromNotes(position.notes);
  }
  const std::string digest = executor::DigestOfData(data);
  EvaluatedRunActions actions;
  actions.train =
      [&](int64_t first_step, int64_t most_steps,
          const Notes& notes) -> absl::StatusOr<executor::TrainResult> {
    const std::atomic<bool> at_once = true;
    LOADLINE_ASSIGN_OR_RETURN(executor::TrainResult result,
                              TrainProgram(flags, *running->program, data,
                                           most_steps == 0 ? &at_once : stop,
                                           {.first_step = first_step,
                                            .most_steps = most_steps,
                                            .notes = notes,
                                            .data_digest = digest,
                                            .metrics = metrics,
                                            .files = &files}));
    if (most_steps == 0) result.interrupted = false;
    return result;
  };
  actions.unload = [&]() -> absl::StatusOr<RunState> {
    LOADLINE_ASSIGN_OR_RETURN(RunState state, ReadState(*running->program));
    running->program.reset();  // before the device, which it uses
    running->device.reset();
    return state;
  };
  actions.load = [&](RunState state) -> absl::Status {
    for (models::Value& value : step->graph.values) {
      const auto found = state.find(value.name);
      if (found == state.end()) continue;
      value.initial = models::MakeTensor(value.type, found->second.data());
      state.erase(found);
    }
    LOADLINE_ASSIGN_OR_RETURN(auto device, DeviceFor(flags));
    device->SetAlgorithms(step->machine.algorithms);
    LOADLINE_ASSIGN_OR_RETURN(
        *running,
        LoadRunning(flags, step, std::move(device), !flags.trace.empty(),
                    /*last=*/true));
    return absl::OkStatus();
  };
  LOADLINE_ASSIGN_OR_RETURN(const OptionalLora lora,
                            LoraFor(flags.step.optimizer, flags.step.model));
  actions.evaluate =
      [&](const RunState& state) -> absl::StatusOr<executor::Evaluation> {
    if (!lora.has_value()) return evaluation.Run(&state, stop);
    LOADLINE_ASSIGN_OR_RETURN(
        RunState merged,
        MergedWeights(step->graph, *lora,
                      /*averages=*/false, ReaderOfState(state)));
    merged.insert(state.begin(), state.end());  // keeps what is merged
    return evaluation.Run(&merged, stop);
  };
  actions.evaluated = [&](int64_t at, const executor::Evaluation& result,
                          bool best, const RunState& state) -> absl::Status {
    ShowEvaluation(at, result);
    AddEvaluation(metrics, at, result);
    if (!best || flags.training.best.empty()) return absl::OkStatus();
    LOADLINE_ASSIGN_OR_RETURN(const ModelState model,
                              ModelStateOf(*step, state, lora));
    absl::Status written = files.CheckUnchanged();
    if (written.ok()) {
      written = WriteModel(*step, model, flags.step.model.model,
                           /*average=*/false, flags.training.best);
    }
    if (!written.ok()) WarnNotWritten(written);
    unwritten = std::move(written);
    return absl::OkStatus();
  };
  actions.save = [&](int64_t at, const Notes& notes) -> absl::Status {
    if (flags.checkpoint.empty()) return absl::OkStatus();
    return executor::SaveCheckpoint(flags.checkpoint, *running->program,
                                    {.step = at,
                                     .seed = flags.seed,
                                     .shuffle = !flags.no_shuffle,
                                     .batch = batch,
                                     .examples_seen = at * batch,
                                     .notes = notes,
                                     .data = digest});
  };
  LOADLINE_ASSIGN_OR_RETURN(executor::TrainResult result,
                            TrainEvaluated(options, actions));
  result.unsaved.Update(unwritten);
  return result;
}

}  // namespace loadline::tools
