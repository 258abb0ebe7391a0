// `loadline run`: trains a model within a number of bytes. Tested by
// tests/end_to_end.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "executor/device/stress_device.h"
#include "executor/measure/resident_memory.h"
#include "executor/measure/step_times.h"
#include "executor/program/program.h"
#include "executor/train/data.h"
#include "executor/train/progress.h"
#include "executor/train/train.h"
#include "models/onnx/export.h"
#include "planner/base/status_macros.h"
#include "spdlog/spdlog.h"
#include "tools/cli/command.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/flags.h"
#include "tools/cli/help.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/number_checks.h"
#include "tools/pipeline/choose_structure.h"
#include "tools/pipeline/device.h"
#include "tools/pipeline/load_plan.h"
#include "tools/pipeline/output_paths.h"
#include "tools/pipeline/plan_training_step.h"
#include "tools/pipeline/replan.h"
#include "tools/report/run_report.h"
#include "tools/report/trace_file.h"

namespace loadline::tools {
namespace {

struct Flags {
  StepFlags step;
  int64_t steps = 0;
  int64_t epochs = 0;
  uint64_t seed = 0;
  bool no_shuffle = false;
  std::string out;
  std::string checkpoint;
  int64_t checkpoint_every = 0;
  bool resume = false;
  bool overwrite = false;
  std::string host_store;
  int64_t log_every = 10;
  std::string trace;
  std::string plan_in;
  std::string problem_in;
  std::optional<uint64_t> stress;  // seed; none: no stress device
  bool replan = false;
  int64_t replan_after = 5;
  bool json = false;
};

// A loaded program with its device.
struct Running {
  std::unique_ptr<executor::Device> device;  // destroyed after the program
  std::unique_ptr<executor::Program> program;
};

absl::StatusOr<std::unique_ptr<executor::Device>> DeviceFor(
    const Flags& flags) {
  LOADLINE_ASSIGN_OR_RETURN(
      auto device, MakeDevice(flags.step.plan.device, flags.host_store));
  if (!flags.stress.has_value()) return device;
  return std::make_unique<executor::StressDevice>(
      std::move(device), executor::StressOptions{.seed = *flags.stress});
}

// A checkpoint may be days of work.
absl::Status CheckCheckpoint(const Flags& flags) {
  if (flags.resume && flags.checkpoint.empty()) {
    return absl::InvalidArgumentError("--resume: needs --checkpoint FILE");
  }
  if (flags.resume && flags.overwrite) {
    return absl::InvalidArgumentError(
        "--resume and --overwrite: give one of them");
  }
  std::error_code error;
  if (!flags.resume && !flags.overwrite &&
      std::filesystem::is_regular_file(flags.checkpoint, error)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--checkpoint ", flags.checkpoint,
        ": exists; continue from it with --resume, replace it with "
        "--overwrite, or name another file"));
  }
  return absl::OkStatus();
}

// Everything that is known to fail is checked before hours of training.
absl::Status CheckFlags(const Flags& flags) {
  if (flags.step.loss.data.empty()) {
    return absl::InvalidArgumentError("--data: expected an .npz file");
  }
  if (flags.steps > 0 && flags.epochs > 0) {
    return absl::InvalidArgumentError("--steps and --epochs: give one of them");
  }
  if (flags.replan && !flags.plan_in.empty()) {
    return absl::InvalidArgumentError(
        "--replan and --plan: give one of them; --plan says which plan to run");
  }
  if (IsAuto(flags.step.plan) && (flags.replan || !flags.plan_in.empty())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--micro-batches auto and ", flags.replan ? "--replan" : "--plan",
        ": give the number of micro-batches instead"));
  }
  std::vector<NamedPath> inputs = InputPaths(flags.step);
  inputs.push_back({"--plan", flags.plan_in});
  inputs.push_back({"--problem", flags.problem_in});
  LOADLINE_RETURN_IF_ERROR(
      CheckOutputPaths(inputs, {{"-o", flags.out},
                                {"--checkpoint", flags.checkpoint},
                                {"--trace", flags.trace},
                                {"--host-store", flags.host_store, true}}));
  LOADLINE_RETURN_IF_ERROR(CheckCheckpoint(flags));
  for (const std::string* path :
       {&flags.out, &flags.checkpoint, &flags.trace}) {
    if (path->empty()) continue;
    std::filesystem::path folder = std::filesystem::path(*path).parent_path();
    if (folder.empty()) folder = ".";
    if (access(folder.c_str(), W_OK) != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          *path, ": the folder ", folder.string(), " cannot be written to"));
    }
  }
  return absl::OkStatus();
}

// `graph`: the graph that the data were loaded for.
int64_t StepsFor(const Flags& flags, const executor::DataSet& data,
                 const models::Graph& graph) {
  if (flags.steps > 0) return flags.steps;
  const int64_t batch = *executor::BatchOf(graph);
  return std::max<int64_t>(1, flags.epochs) * (data.examples / batch);
}

// Loads the plan. `last`: no other is loaded later, so the initial contents of
// parameters and states are freed as soon as the device has them.
absl::StatusOr<Running> Load(const Flags& flags, PlannedStep* step,
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

executor::TrainOptions TrainOptionsFor(const Flags& flags,
                                       const executor::DataSet& data,
                                       const models::Graph& graph) {
  return {.steps = StepsFor(flags, data, graph),
          .learning_rate = static_cast<float>(flags.step.optimizer.lr),
          .seed = flags.seed,
          .shuffle = !flags.no_shuffle,
          .checkpoint_path = flags.checkpoint,
          .checkpoint_interval = flags.checkpoint_every,
          .resume = flags.resume};
}

// How one call of Train differs from the whole run.
struct Part {
  int64_t first_step = 0;
  int64_t most_steps = 0;
  bool resume = false;
};

absl::StatusOr<executor::TrainResult> TrainProgram(
    const Flags& flags, executor::Program& program,
    const executor::DataSet& data, const std::atomic<bool>* stop,
    const Part& part, const std::function<void()>& after_step = {}) {
  executor::TrainOptions options =
      TrainOptionsFor(flags, data, program.graph());
  options.first_step = part.first_step;
  options.most_steps = part.most_steps;
  options.resume = part.resume;
  options.stop = stop;
  executor::ProgressLine line(stderr, isatty(STDERR_FILENO) != 0,
                              flags.log_every);
  const bool show = spdlog::should_log(spdlog::level::info);
  options.progress = [&](const executor::TrainProgress& progress) {
    if (show) line.Show(progress);
    if (after_step) after_step();
  };
  return executor::Train(program, data, options);
}

// Trains some steps, plans again with their times, and continues with the new
// plan on another device, from the same weights and optimizer state.
absl::StatusOr<executor::TrainResult> TrainTwoPlans(
    const Flags& flags, const executor::DataSet& data,
    const std::atomic<bool>* stop, PlannedStep* step, Running* running,
    Replanned* first_plan) {
  executor::StepTimes times(step->graph, step->problem, step->plan);
  bool cold = true;
  LOADLINE_ASSIGN_OR_RETURN(
      executor::TrainResult first,
      TrainProgram(flags, *running->program, data, stop,
                   {.most_steps = flags.replan_after, .resume = flags.resume},
                   [&] {
                     if (!std::exchange(cold, false))
                       times.Add(running->device->trace());
                   }));
  const int64_t done =
      first.first_step + static_cast<int64_t>(first.losses.size());
  if (first.interrupted || done >= StepsFor(flags, data, step->graph)) {
    return first;
  }
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
      TrainProgram(flags, *running->program, data, stop, {.first_step = done}));
  rest.first_step = first.first_step;
  rest.losses.insert(rest.losses.begin(), first.losses.begin(),
                     first.losses.end());
  return rest;
}

// Frees the program and the arena as soon as the weights are read: writing
// takes memory too.
absl::Status WriteModel(const Flags& flags, const PlannedStep& step,
                        Running* running) {
  std::map<std::string, models::Tensor> trained;
  for (const std::string& name : step.model_tensors) {
    const std::optional<models::ValueId> id = step.graph.Find(name);
    if (!id.has_value()) continue;  // no node reads it, so it is unchanged
    const models::TensorType& type = step.graph.value(*id).type;
    std::vector<std::byte> data(static_cast<size_t>(type.bytes()));
    LOADLINE_RETURN_IF_ERROR(
        running->program->ReadPersistent(name, absl::MakeSpan(data)));
    trained.emplace(
        name,
        models::Tensor{type, std::make_shared<const std::vector<std::byte>>(
                                 std::move(data))});
  }
  running->program.reset();  // before the device, which it uses
  running->device.reset();
  return models::ExportTrained(flags.step.model.model, std::move(trained),
                               flags.out);
}

absl::Status RunRun(const Flags& flags) {
  LOADLINE_RETURN_IF_ERROR(CheckFlags(flags));
  const std::atomic<bool>* stop = CatchInterrupts();
  LOADLINE_ASSIGN_OR_RETURN(auto device, DeviceFor(flags));
  executor::DataSet data;
  const auto check = [&](const models::Graph& graph) -> absl::Status {
    LOADLINE_ASSIGN_OR_RETURN(data,
                              executor::LoadData(flags.step.loss.data, graph));
    return executor::CheckTrainable(graph, data,
                                    TrainOptionsFor(flags, data, graph));
  };
  LOADLINE_ASSIGN_OR_RETURN(PlannedStep step,
                            PlanTrainingStep(flags.step, *device, stop, check));
  if (!flags.plan_in.empty()) {
    LOADLINE_RETURN_IF_ERROR(TakePlan(flags.plan_in, flags.problem_in,
                                      flags.step.plan.max_gradient_error,
                                      &step));
  }
  // The planner's memory is free again, and most of it not resident.
  executor::ReleaseFreedMemory();
  ResidentMemory resident;
  if (device->is_host()) {
    resident.base_bytes = executor::ResidentBytes();
    resident.planning_bytes = executor::PeakResidentBytes();
  }
  LOADLINE_ASSIGN_OR_RETURN(Running running,
                            Load(flags, &step, std::move(device),
                                 flags.replan || !flags.trace.empty(),
                                 /*last=*/!flags.replan));
  Replanned first_plan;
  LOADLINE_ASSIGN_OR_RETURN(
      const executor::TrainResult result,
      flags.replan
          ? TrainTwoPlans(flags, data, stop, &step, &running, &first_plan)
          : TrainProgram(flags, *running.program, data, stop,
                         {.resume = flags.resume}));
  if (!flags.trace.empty()) {
    LOADLINE_RETURN_IF_ERROR(
        WriteTrace(flags.trace, step, running.device->trace()));
  }
  if (!flags.out.empty() && !result.interrupted) {
    LOADLINE_RETURN_IF_ERROR(WriteModel(flags, step, &running));
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
  if (result.interrupted) {
    return absl::CancelledError(
        flags.checkpoint.empty()
            ? "interrupted; nothing was saved, as no --checkpoint was given"
            : absl::StrCat("interrupted; go on with --checkpoint ",
                           flags.checkpoint, " --resume"));
  }
  return absl::OkStatus();
}

void AddRunFlags(CLI::App* app, Flags* flags) {
  app->add_option("--steps", flags->steps, "Steps in all")
      ->check(CheckPositive)
      ->take_last();
  app->add_option("--epochs", flags->epochs,
                  "Instead of --steps: passes over the data (default 1)")
      ->check(CheckPositive)
      ->take_last();
  app->add_option("--seed", flags->seed, "Seed of shuffling and dropout")
      ->check(CheckNonNegative)
      ->take_last();
  app->add_flag("--no-shuffle", flags->no_shuffle, "Take the examples in order")
      ->group(kRareFlags);
  AddOutputFlag(app, &flags->out, "Trained model, .onnx");
  app->add_option("--checkpoint", flags->checkpoint,
                  "Checkpoint file, .safetensors")
      ->type_name("FILE")
      ->take_last();
  app->add_option("--checkpoint-every", flags->checkpoint_every,
                  "Steps between checkpoints (default: at the end)")
      ->check(CheckNonNegative)
      ->take_last();
  app->add_flag("--resume", flags->resume, "Go on from the checkpoint");
  app->add_flag("--overwrite", flags->overwrite,
                "Replace a checkpoint that exists")
      ->group(kRareFlags);
  app->add_option("--host-store", flags->host_store,
                  "On a CPU: new file, or folder, for what is copied out "
                  "(default: $TMPDIR or /var/tmp)")
      ->type_name("FILE")
      ->take_last()
      ->group(kRareFlags);
  app->add_option("--log-every", flags->log_every,
                  "Steps between lines of progress off a terminal")
      ->check(CheckPositive)
      ->take_last()
      ->group(kRareFlags);
  app->add_option("--trace", flags->trace,
                  "Chrome trace of the last step, .json")
      ->type_name("FILE")
      ->take_last();
  app->add_flag("--replan", flags->replan,
                "Plan again with the times of the first steps");
  app->add_option("--replan-after", flags->replan_after,
                  "How many steps these are (default 5)")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 40))
      ->take_last()
      ->group(kRareFlags);
  app->add_option("--plan", flags->plan_in, "Run this plan")
      ->type_name("FILE")
      ->take_last()
      ->group(kRareFlags);
  app->add_option("--problem", flags->problem_in,
                  "The problem that --plan was made for")
      ->type_name("FILE")
      ->take_last()
      ->group(kRareFlags);
  app->add_option("--stress", flags->stress,
                  "Look for bugs: random delays from this seed, freed bytes "
                  "overwritten, canaries behind workspaces")
      ->type_name("SEED")
      ->take_last()
      ->group(kRareFlags);
  AddJsonFlag(app, &flags->json);
}

}  // namespace

VerbBody AddRun(CLI::App* app) {
  auto flags = std::make_shared<Flags>();
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
