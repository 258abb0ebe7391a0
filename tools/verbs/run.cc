// `loadline run`: trains a model within a number of bytes. Tested by
// tests/end_to_end.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "executor/device/stress_device.h"
#include "executor/measure/resident_memory.h"
#include "executor/measure/step_times.h"
#include "executor/program/program.h"
#include "executor/train/checkpoint.h"
#include "executor/train/data.h"
#include "executor/train/metrics.h"
#include "executor/train/progress.h"
#include "executor/train/train.h"
#include "planner/base/status_macros.h"
#include "spdlog/spdlog.h"
#include "tools/cli/command.h"
#include "tools/cli/device_names.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/flags.h"
#include "tools/cli/interrupt.h"
#include "tools/pipeline/choose_structure.h"
#include "tools/pipeline/device.h"
#include "tools/pipeline/evaluated_run.h"
#include "tools/pipeline/evaluation.h"
#include "tools/pipeline/load_data.h"
#include "tools/pipeline/load_plan.h"
#include "tools/pipeline/lora.h"
#include "tools/pipeline/model_files.h"
#include "tools/pipeline/output_paths.h"
#include "tools/pipeline/phase_notes.h"
#include "tools/pipeline/plan_training_step.h"
#include "tools/pipeline/replan.h"
#include "tools/pipeline/train_phases.h"
#include "tools/pipeline/trained_models.h"
#include "tools/pipeline/training_flags.h"
#include "tools/pipeline/write_pruned.h"
#include "tools/report/phases_report.h"
#include "tools/report/run_report.h"
#include "tools/report/trace_file.h"
#include "tools/verbs/check_room.h"
#include "tools/verbs/rescue.h"
#include "tools/verbs/run_flags.h"

namespace loadline::tools {
namespace {

// A loaded program with its device.
struct Running {
  std::unique_ptr<executor::Device> device;  // destroyed after the program
  std::unique_ptr<executor::Program> program;
};

absl::StatusOr<std::unique_ptr<executor::Device>> DeviceFor(
    const RunFlags& flags) {
  LOADLINE_ASSIGN_OR_RETURN(
      auto device, MakeDevice(flags.step.plan.device, flags.host_store));
  if (!flags.stress.has_value()) return device;
  return std::make_unique<executor::StressDevice>(
      std::move(device), executor::StressOptions{.seed = *flags.stress});
}

// `graph`: the graph that the data were loaded for.
absl::StatusOr<int64_t> StepsFor(const RunFlags& flags,
                                 const executor::DataSet& data,
                                 const models::Graph& graph) {
  const int64_t batch = executor::BatchOf(graph).value_or(0);
  return executor::StepsOfRun(flags.steps, flags.epochs,
                              batch > 0 ? data.examples / batch : 0);
}

// Loads the plan. `last`: no other is loaded later, so the initial contents of
// parameters and states are freed as soon as the device has them.
absl::StatusOr<Running> Load(const RunFlags& flags, PlannedStep* step,
                             std::unique_ptr<executor::Device> device,
                             bool trace, bool last) {
  Running running = {.device = std::move(device)};
  executor::LoadOptions options = {.poison = flags.stress.has_value(),
                                   .trace = trace};
  if (last) {
    options.written = [step](models::ValueId id) {
      models::Value& value = step->graph.value(id);
      if (value.kind != models::ValueKind::kConstant) value.initial.reset();
    };
  }
  LOADLINE_ASSIGN_OR_RETURN(
      running.program, executor::Load(step->graph, step->problem, step->plan,
                                      *running.device, options));
  executor::ReleaseFreedMemory();
  return running;
}

absl::StatusOr<executor::TrainOptions> TrainOptionsFor(
    const RunFlags& flags, const executor::DataSet& data,
    const models::Graph& graph) {
  LOADLINE_ASSIGN_OR_RETURN(const int64_t steps, StepsFor(flags, data, graph));
  LOADLINE_ASSIGN_OR_RETURN(
      const executor::Schedule schedule,
      ScheduleFor(flags.training, flags.step.optimizer.lr, steps));
  return executor::TrainOptions{.steps = steps,
                                .schedule = schedule,
                                .seed = flags.seed,
                                .shuffle = !flags.no_shuffle,
                                .checkpoint_path = flags.checkpoint,
                                .checkpoint_interval = flags.checkpoint_every,
                                .resume = flags.resume};
}

// Adds a line with `add`. The first write error is logged at once, because the
// run may go on for hours.
template <typename Add>
void AddLine(executor::MetricsFile* metrics, int64_t step, const Add& add) {
  if (metrics == nullptr || !metrics->status().ok()) return;
  add(*metrics);
  const absl::Status status = metrics->status();
  if (status.ok()) return;
  spdlog::warn("{}; lines from step {} on are missing, and the run goes on",
               std::string(status.message()), step);
}

void WarnNotWritten(const absl::Status& status) {
  spdlog::warn("{}; the run goes on", std::string(status.message()));
}

// How one call of Train differs from the whole run.
struct Part {
  int64_t first_step = 0;
  int64_t most_steps = 0;
  bool resume = false;
  Notes notes;  // for its checkpoints
  executor::MetricsFile* metrics = nullptr;
  const ModelFiles* files = nullptr;
};

absl::StatusOr<executor::TrainResult> TrainProgram(
    const RunFlags& flags, executor::Program& program,
    const executor::DataSet& data, const std::atomic<bool>* stop,
    const Part& part, const std::function<void()>& after_step = {}) {
  LOADLINE_ASSIGN_OR_RETURN(executor::TrainOptions options,
                            TrainOptionsFor(flags, data, program.graph()));
  options.first_step = part.first_step;
  options.most_steps = part.most_steps;
  options.resume = part.resume;
  options.notes = part.notes;
  options.stop = stop;
  options.not_saved = WarnNotWritten;
  options.rescue_paths = [&](const models::Graph& graph, bool ended) {
    return RescuePaths(flags, *part.files, graph, ended);
  };
  executor::ProgressLine line(stderr, isatty(STDERR_FILENO) != 0,
                              flags.log_every);
  const bool show = spdlog::should_log(spdlog::level::info);
  options.progress = [&](const executor::TrainProgress& progress) {
    if (show) line.Show(progress);
    AddLine(part.metrics, progress.step,
            [&](executor::MetricsFile& file) { file.Add(progress); });
    if (after_step) after_step();
  };
  return executor::Train(program, data, options);
}

// Trains some steps, plans again with their times, and continues with the new
// plan on another device, from the same weights and optimizer state.
absl::StatusOr<executor::TrainResult> TrainTwoPlans(
    const RunFlags& flags, const executor::DataSet& data,
    const std::atomic<bool>* stop, const ModelFiles& files,
    executor::MetricsFile* metrics, PlannedStep* step, Running* running,
    Replanned* first_plan) {
  executor::StepTimes times(step->graph, step->problem, step->plan);
  bool cold = true;
  LOADLINE_ASSIGN_OR_RETURN(
      executor::TrainResult first,
      TrainProgram(flags, *running->program, data, stop,
                   {.most_steps = flags.replan_after.value_or(5),
                    .resume = flags.resume,
                    .metrics = metrics,
                    .files = &files},
                   [&] {
                     if (!std::exchange(cold, false))
                       times.Add(running->device->trace());
                   }));
  const int64_t done =
      first.first_step + static_cast<int64_t>(first.losses.size());
  LOADLINE_ASSIGN_OR_RETURN(const int64_t steps,
                            StepsFor(flags, data, step->graph));
  if (first.interrupted || done >= steps) return first;
  LOADLINE_ASSIGN_OR_RETURN(const auto state, ReadState(*running->program));
  running->program.reset();  // before the device, which it uses
  running->device.reset();   // free its bytes before allocating others
  *first_plan = {.steps = static_cast<int64_t>(first.losses.size()),
                 .step_ns = first.step_ns};
  LOADLINE_ASSIGN_OR_RETURN(auto device, DeviceFor(flags));
  LOADLINE_RETURN_IF_ERROR(
      PlanAgain(flags.step, times, *device, stop, step, first_plan));
  LOADLINE_ASSIGN_OR_RETURN(
      *running, Load(flags, step, std::move(device), !flags.trace.empty(),
                     /*last=*/true));
  LOADLINE_RETURN_IF_ERROR(WriteState(state, *running->program));
  LOADLINE_ASSIGN_OR_RETURN(
      executor::TrainResult rest,
      TrainProgram(flags, *running->program, data, stop,
                   {.first_step = done, .metrics = metrics, .files = &files}));
  rest.first_step = first.first_step;
  rest.losses.insert(rest.losses.begin(), first.losses.begin(),
                     first.losses.end());
  return rest;
}

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

// The evaluation of --eval-data, within the bytes of the training's plan.
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

void ShowEvaluation(int64_t step, const executor::Evaluation& evaluation) {
  spdlog::info(
      "step {}: evaluation loss {:.6f}{}", step, evaluation.loss,
      evaluation.accuracy.has_value()
          ? absl::StrFormat(", accuracy %.2f %%", 100 * *evaluation.accuracy)
          : "");
}

// Trains and evaluates in turns (tools/pipeline/evaluated_run.h).
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
        *running, Load(flags, step, std::move(device), !flags.trace.empty(),
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
    AddLine(metrics, at, [&](executor::MetricsFile& file) {
      file.AddEvaluation(at, result);
    });
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
                                     .notes = notes});
  };
  LOADLINE_ASSIGN_OR_RETURN(executor::TrainResult result,
                            TrainEvaluated(options, actions));
  result.unsaved.Update(unwritten);
  return result;
}

absl::Status InterruptedError(const RunFlags& flags) {
  return absl::CancelledError(
      flags.checkpoint.empty()
          ? "interrupted; nothing was saved, as no --checkpoint was given"
          : absl::StrCat("interrupted; go on with --checkpoint ",
                         flags.checkpoint, " --resume"));
}

void NoteIfNothingIsSaved(const RunFlags& flags) {
  for (const std::string& path :
       {flags.out, flags.checkpoint, flags.training.best,
        flags.training.average, flags.training.adapters}) {
    if (!path.empty()) return;
  }
  spdlog::info(
      "the trained model will not be saved; -o trained.onnx or --checkpoint "
      "FILE saves it");
}

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
            AddLine(metrics.get(), evaluation.step,
                    [&](executor::MetricsFile& file) {
                      file.AddEvaluation(evaluation.step, evaluation.result);
                    });
          }};
  run.train = {.seed = flags.seed,
               .shuffle = !flags.no_shuffle,
               .checkpoint_path = flags.checkpoint,
               .checkpoint_interval = flags.checkpoint_every,
               .resume = flags.resume,
               .progress = [&](const executor::TrainProgress& progress) {
                 if (show) line.Show(progress);
                 AddLine(
                     metrics.get(), progress.step,
                     [&](executor::MetricsFile& file) { file.Add(progress); });
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
    return executor::CheckTrainable(graph, data, options);
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
                            Load(flags, &step, std::move(device),
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
    LOADLINE_RETURN_IF_ERROR(
        WriteTrace(flags.trace, step, running.device->trace()));
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
