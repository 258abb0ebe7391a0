// Tested by tests/end_to_end.
#include "tools/verbs/run_recipe.h"

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>

#include "executor/train/metrics.h"
#include "executor/train/progress.h"
#include "executor/train/train.h"
#include "planner/base/status_macros.h"
#include "spdlog/spdlog.h"
#include "tools/pipeline/output_paths.h"
#include "tools/pipeline/phase_notes.h"
#include "tools/pipeline/train_phases.h"
#include "tools/pipeline/training_flags.h"
#include "tools/pipeline/write_pruned.h"
#include "tools/report/phases_report.h"
#include "tools/verbs/rescue.h"
#include "tools/verbs/run_notes.h"
#include "tools/verbs/run_training.h"

namespace loadline::tools {

absl::Status RunRecipe(const RunFlags& flags, const ModelFiles& model_files,
                       const std::atomic<bool>* stop) {
  executor::ProgressLine line(stderr, isatty(STDERR_FILENO) != 0,
                              flags.log_every);
  const bool show = spdlog::should_log(spdlog::level::info);
  std::unique_ptr<executor::MetricsFile> metrics;
  PhasedRun run = {
      .step = flags.step,
      .recipe_path = flags.recipe,
      .steps = flags.steps,
      .epochs = flags.epochs,
      .poison = flags.stress.has_value(),
      .exports = !flags.out.empty(),
      .device = [&] { return DeviceFor(flags); },
      .schedule =
          [&](int64_t steps) {
            return ScheduleFor(flags.training, flags.step.optimizer.lr, steps);
          },
      .eval_data = flags.training.eval_data,
      .eval_every = flags.training.eval_every,
      .evaluated =
          [&](const PhaseEvaluation& evaluation) {
            ShowEvaluation(evaluation.step, evaluation.result);
            AddEvaluation(metrics.get(), evaluation.step, evaluation.result);
          }};
  run.train = {.seed = flags.seed,
               .shuffle = !flags.no_shuffle,
               .checkpoint_path = flags.checkpoint,
               .checkpoint_interval = flags.checkpoint_every,
               .resume = flags.resume,
               .progress = [&](const executor::TrainProgress& progress) {
                 if (show) line.Show(progress);
                 AddProgress(metrics.get(), progress);
               }};
  run.begins = [&](int64_t done, bool evaluates_again) -> absl::Status {
    if (flags.training.metrics.empty()) return absl::OkStatus();
    LOADLINE_ASSIGN_OR_RETURN(
        metrics, executor::MetricsFile::Open(flags.training.metrics, done,
                                             evaluates_again));
    return absl::OkStatus();
  };
  run.train.not_saved = WarnNotWritten;
  run.train.rescue_paths = [&](const models::Graph& graph, bool ended) {
    return RescuePaths(flags, model_files, graph, ended);
  };
  run.goes_on = [&](const std::string& rescue_path) {
    return WithRescue(model_files.CheckUnchanged(), rescue_path);
  };
  NoteIfNothingIsSaved(flags);
  LOADLINE_ASSIGN_OR_RETURN(PhasedResult result, TrainPhases(run, stop));
  FileBytes files;
  if (!flags.out.empty() && !result.train.interrupted) {
    LOADLINE_RETURN_IF_ERROR(
        WithRescue(model_files.CheckUnchanged(), result.train.rescue_path));
    absl::StatusOr<FileBytes> written =
        WritePruned(flags.step.model, flags.out, &result);
    LOADLINE_RETURN_IF_ERROR(
        WithRescue(written.status(), result.train.rescue_path));
    files = *written;
  }
  if (flags.json) {
    PrintPhasedRunJson(result, files);
  } else {
    PrintPhasedRunTable(result, files);
  }
  LOADLINE_RETURN_IF_ERROR(CheckPhaseBudgets(result.phases));
  LOADLINE_RETURN_IF_ERROR(result.train.unsaved);
  if (metrics != nullptr) LOADLINE_RETURN_IF_ERROR(metrics->status());
  if (result.train.interrupted) return InterruptedError(flags);
  LogWritten(WrittenFiles(flags));
  return absl::OkStatus();
}

}  // namespace loadline::tools
