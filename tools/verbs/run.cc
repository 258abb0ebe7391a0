// `loadline run`: trains a model within a number of bytes. Tested by
// tests/end_to_end.
#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "executor/measure/resident_memory.h"
#include "executor/train/checkpoint.h"
#include "executor/train/data.h"
#include "executor/train/data_digest.h"
#include "executor/train/metrics.h"
#include "executor/train/train.h"
#include "planner/base/status_macros.h"
#include "tools/cli/command.h"
#include "tools/cli/device_names.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/flags.h"
#include "tools/cli/interrupt.h"
#include "tools/pipeline/evaluated_run.h"
#include "tools/pipeline/evaluation.h"
#include "tools/pipeline/load_data.h"
#include "tools/pipeline/load_plan.h"
#include "tools/pipeline/lora.h"
#include "tools/pipeline/model_files.h"
#include "tools/pipeline/output_paths.h"
#include "tools/pipeline/plan_training_step.h"
#include "tools/pipeline/replan.h"
#include "tools/pipeline/trained_models.h"
#include "tools/report/run_report.h"
#include "tools/report/trace_file.h"
#include "tools/verbs/check_room.h"
#include "tools/verbs/rescue.h"
#include "tools/verbs/run_evaluated.h"
#include "tools/verbs/run_flags.h"
#include "tools/verbs/run_notes.h"
#include "tools/verbs/run_recipe.h"
#include "tools/verbs/run_training.h"

namespace loadline::tools {
namespace {

// Writes the trained model, that with averaged weights, and adapters: each that
// can be written, whatever became of the others. Frees the program and the
// arena as soon as the weights are read: writing takes memory too.
absl::Status WriteModels(const RunFlags& flags, const ModelFiles& files,
                         const PlannedStep& step, Running* running) {
  const std::string& averaged = flags.training.average;
  LOADLINE_ASSIGN_OR_RETURN(const OptionalLora lora,
                            LoraFor(flags.step.optimizer, flags.step.model));
  absl::Status status;
  if (!flags.training.adapters.empty()) {
    status.Update(
        WriteAdapters(flags.training.adapters, step.graph, *lora,
                      ReaderOfProgram(step.graph, *running->program)));
  }
  if (flags.out.empty() && averaged.empty()) return status;
  LOADLINE_RETURN_IF_ERROR(files.CheckUnchanged());
  LOADLINE_ASSIGN_OR_RETURN(
      ModelState state,
      ReadModelState(step, *running->program, !averaged.empty(), lora));
  running->program.reset();  // before the device, which it uses
  running->device.reset();
  const std::string& original = flags.step.model.model;
  if (!averaged.empty()) {
    status.Update(
        WriteModel(step, state, original, /*average=*/true, averaged));
  }
  if (!flags.out.empty()) {
    status.Update(
        WriteModel(step, state, original, /*average=*/false, flags.out));
  }
  return status;
}

absl::StatusOr<std::unique_ptr<executor::MetricsFile>> OpenMetrics(
    const RunFlags& flags, const PlannedStep& step) {
  if (flags.training.metrics.empty()) return nullptr;
  int64_t done = 0;
  bool evaluates_again = false;
  if (flags.resume) {
    LOADLINE_ASSIGN_OR_RETURN(
        const executor::RunPosition position,
        executor::ReadCheckpointPosition(flags.checkpoint, step.graph));
    done = position.step;
    // A checkpoint is written before the evaluation of its step.
    evaluates_again =
        !flags.training.eval_data.empty() &&
        EvaluationHistory::FromNotes(position.notes).last_step < done;
  }
  return executor::MetricsFile::Open(flags.training.metrics, done,
                                     evaluates_again);
}

// The plan of --plan, which no search precedes, or one that is searched for.
absl::StatusOr<PlannedStep> PlannedFor(const RunFlags& flags,
                                       executor::Device& device,
                                       const std::atomic<bool>* stop,
                                       const BeforeMeasuring& check) {
  if (flags.plan_in.empty()) {
    return PlanTrainingStep(flags.step, device, stop, check);
  }
  LOADLINE_ASSIGN_OR_RETURN(PlannedStep step,
                            PoseTrainingStep(flags.step, device, stop, check));
  LOADLINE_RETURN_IF_ERROR(
      TakePlan(flags.plan_in, flags.problem_in, flags.step.plan, &step));
  return step;
}

// After the first step: to write a model, or for the next phase.
bool ReadsModelAgain(const RunFlags& flags) {
  return !flags.recipe.empty() || !flags.out.empty() ||
         !flags.training.best.empty() || !flags.training.average.empty();
}

absl::Status RunRun(const RunFlags& flags) {
  LOADLINE_RETURN_IF_ERROR(CheckRunFlags(flags));
  const std::atomic<bool>* stop = CatchInterrupts();
  ModelFiles files;
  if (ReadsModelAgain(flags)) {
    LOADLINE_ASSIGN_OR_RETURN(files, ModelFiles::Of(flags.step.model.model));
  }
  if (!flags.recipe.empty()) return RunRecipe(flags, files, stop);
  LOADLINE_ASSIGN_OR_RETURN(auto device, DeviceFor(flags));
  executor::DataSet data;
  const auto check = [&](const models::Graph& graph) -> absl::Status {
    LOADLINE_RETURN_IF_ERROR(CheckRoomForModels(flags, graph));
    LOADLINE_ASSIGN_OR_RETURN(data, LoadDataFor(flags.step.loss, graph));
    LOADLINE_ASSIGN_OR_RETURN(const executor::TrainOptions options,
                              TrainOptionsFor(flags, data, graph));
    LOADLINE_RETURN_IF_ERROR(executor::CheckTrainable(graph, data, options));
    if (!flags.resume) return absl::OkStatus();
    LOADLINE_ASSIGN_OR_RETURN(
        const executor::RunPosition position,
        executor::ReadCheckpointPosition(flags.checkpoint));
    WarnOfOtherData(flags.checkpoint, position, flags.step.loss.data,
                    executor::DigestOfData(data));
    return absl::OkStatus();
  };
  LOADLINE_ASSIGN_OR_RETURN(PlannedStep step,
                            PlannedFor(flags, *device, stop, check));
  std::unique_ptr<EvaluationPlan> evaluation;
  if (!flags.training.eval_data.empty()) {
    LOADLINE_ASSIGN_OR_RETURN(evaluation, PlanEvaluation(flags, step));
  }
  // The planner's memory is free again, and most of it not resident.
  executor::ReleaseFreedMemory();
  ResidentMemory resident;
  if (device->is_host()) {
    resident.base_bytes = executor::ResidentBytes();
    resident.planning_bytes = executor::PeakResidentBytes();
  }
  NoteIfNothingIsSaved(flags);
  LOADLINE_ASSIGN_OR_RETURN(Running running,
                            LoadRunning(flags, &step, std::move(device),
                                        flags.replan || !flags.trace.empty(),
                                        /*last=*/!flags.replan));
  if (evaluation != nullptr) evaluation->DropContents(step.graph);
  Replanned first_plan;
  LOADLINE_ASSIGN_OR_RETURN(const auto metrics, OpenMetrics(flags, step));
  LOADLINE_ASSIGN_OR_RETURN(
      const executor::TrainResult result,
      evaluation != nullptr
          ? TrainWithEvaluations(flags, data, stop, files, *evaluation,
                                 metrics.get(), &step, &running)
      : flags.replan ? TrainTwoPlans(flags, data, stop, files, metrics.get(),
                                     &step, &running, &first_plan)
                     : TrainProgram(flags, *running.program, data, stop,
                                    {.resume = flags.resume,
                                     .metrics = metrics.get(),
                                     .files = &files}));
  if (!flags.trace.empty()) {
    LOADLINE_RETURN_IF_ERROR(WriteTrace(flags.trace, step,
                                        running.device->trace(),
                                        running.program->UploadNames()));
  }
  absl::Status written = result.unsaved;
  if (!result.interrupted) {
    written.Update(WithRescue(WriteModels(flags, files, step, &running),
                              result.rescue_path));
  }
  if (resident.base_bytes > 0) {
    resident.peak_bytes = executor::PeakResidentBytes();
    if (flags.step.plan.device == kEmulated) {
      resident.store_bytes = step.plan.host_bytes;
    }
  }
  if (flags.json) {
    PrintRunJson(step, first_plan, result, resident);
  } else {
    PrintRunTable(step, first_plan, result, resident);
  }
  if (result.arena_bytes > step.plan.budget_bytes) {
    return AboveBudgetError(absl::StrCat("measured ", result.arena_bytes,
                                         " bytes, above the budget of ",
                                         step.plan.budget_bytes));
  }
  LOADLINE_RETURN_IF_ERROR(written);
  if (metrics != nullptr) LOADLINE_RETURN_IF_ERROR(metrics->status());
  if (result.interrupted) return InterruptedError(flags);
  LogWritten(WrittenFiles(flags));
  return absl::OkStatus();
}

}  // namespace

VerbBody AddRun(CLI::App* app) {
  auto flags = std::make_shared<RunFlags>();
  flags->step.plan.calibrate = true;
  flags->step.purpose.runs_here = true;
  AddModelFlags(app, &flags->step.model);
  AddLossFlags(app, &flags->step.loss);
  AddOptimizerFlags(app, &flags->step.optimizer);
  AddPlanFlags(app, &flags->step.plan);
  AddStructureFlags(app, &flags->step.plan);
  AddRunFlags(app, flags.get());
  return [flags] { return RunRun(*flags); };
}

}  // namespace loadline::tools
