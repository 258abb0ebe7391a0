// Tested by tests/end_to_end.
#include "tools/verbs/run_training.h"

#include <unistd.h>

#include <string>
#include <utility>

#include "executor/device/stress_device.h"
#include "executor/measure/resident_memory.h"
#include "executor/measure/step_times.h"
#include "executor/train/progress.h"
#include "planner/base/status_macros.h"
#include "spdlog/spdlog.h"
#include "tools/pipeline/device.h"
#include "tools/pipeline/training_flags.h"
#include "tools/verbs/rescue.h"
#include "tools/verbs/run_notes.h"

namespace loadline::tools {

absl::StatusOr<std::unique_ptr<executor::Device>> DeviceFor(
    const RunFlags& flags) {
  LOADLINE_ASSIGN_OR_RETURN(
      auto device, MakeDevice(flags.step.plan.device, flags.host_store));
  if (!flags.stress.has_value()) return device;
  return std::make_unique<executor::StressDevice>(
      std::move(device), executor::StressOptions{.seed = *flags.stress});
}

absl::StatusOr<int64_t> StepsFor(const RunFlags& flags,
                                 const executor::DataSet& data,
                                 const models::Graph& graph) {
  const int64_t batch = executor::BatchOf(graph).value_or(0);
  return executor::StepsOfRun(flags.steps, flags.epochs,
                              batch > 0 ? data.examples / batch : 0);
}

absl::StatusOr<Running> LoadRunning(const RunFlags& flags, PlannedStep* step,
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

absl::StatusOr<executor::TrainResult> TrainProgram(
    const RunFlags& flags, executor::Program& program,
    const executor::DataSet& data, const std::atomic<bool>* stop,
    const TrainCall& call, const std::function<void()>& after_step) {
  LOADLINE_ASSIGN_OR_RETURN(executor::TrainOptions options,
                            TrainOptionsFor(flags, data, program.graph()));
  options.first_step = call.first_step;
  options.most_steps = call.most_steps;
  options.resume = call.resume;
  options.notes = call.notes;
  options.data_digest = call.data_digest;
  options.stop = stop;
  options.not_saved = WarnNotWritten;
  options.rescue_paths = [&](const models::Graph& graph, bool ended) {
    return RescuePaths(flags, *call.files, graph, ended);
  };
  executor::ProgressLine line(stderr, isatty(STDERR_FILENO) != 0,
                              flags.log_every);
  const bool show = spdlog::should_log(spdlog::level::info);
  options.progress = [&](const executor::TrainProgress& progress) {
    if (show) line.Show(progress);
    AddProgress(call.metrics, progress);
    if (after_step) after_step();
  };
  return executor::Train(program, data, options);
}

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
      *running,
      LoadRunning(flags, step, std::move(device), !flags.trace.empty(),
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

}  // namespace loadline::tools
