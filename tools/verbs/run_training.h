// Loads a planned training step and trains it.
#ifndef LOADLINE_TOOLS_VERBS_RUN_TRAINING_H_
#define LOADLINE_TOOLS_VERBS_RUN_TRAINING_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "executor/device/device.h"
#include "executor/program/program.h"
#include "executor/train/data.h"
#include "executor/train/metrics.h"
#include "executor/train/train.h"
#include "models/graph.h"
#include "tools/pipeline/evaluated_run.h"
#include "tools/pipeline/model_files.h"
#include "tools/pipeline/planned_step.h"
#include "tools/pipeline/replan.h"
#include "tools/verbs/run_flags.h"

namespace loadline::tools {

// A loaded program with its device.
struct Running {
  std::unique_ptr<executor::Device> device;  // destroyed after the program
  std::unique_ptr<executor::Program> program;
};

// That of --device, with --host-store and --stress.
absl::StatusOr<std::unique_ptr<executor::Device>> DeviceFor(
    const RunFlags& flags);

// Steps of the whole run. `graph`: the graph that the data were loaded for.
absl::StatusOr<int64_t> StepsFor(const RunFlags& flags,
                                 const executor::DataSet& data,
                                 const models::Graph& graph);

absl::StatusOr<executor::TrainOptions> TrainOptionsFor(
    const RunFlags& flags, const executor::DataSet& data,
    const models::Graph& graph);

// Loads the plan. `last`: no other is loaded later, so the initial contents of
// parameters and states are freed as soon as the device has them.
absl::StatusOr<Running> LoadRunning(const RunFlags& flags, PlannedStep* step,
                                    std::unique_ptr<executor::Device> device,
                                    bool trace, bool last);

// How one call of Train differs from the whole run.
struct TrainCall {
  int64_t first_step = 0;
  int64_t most_steps = 0;
  bool resume = false;
  Notes notes;              // for its checkpoints
  std::string data_digest;  // as TrainOptions has it
  executor::MetricsFile* metrics = nullptr;
  const ModelFiles* files = nullptr;
};

// Trains on the loaded program and shows its progress.
absl::StatusOr<executor::TrainResult> TrainProgram(
    const RunFlags& flags, executor::Program& program,
    const executor::DataSet& data, const std::atomic<bool>* stop,
    const TrainCall& call, const std::function<void()>& after_step = {});

// Trains some steps, plans again with their times, and continues with the new
// plan on another device, from the same weights and optimizer state.
absl::StatusOr<executor::TrainResult> TrainTwoPlans(
    const RunFlags& flags, const executor::DataSet& data,
    const std::atomic<bool>* stop, const ModelFiles& files,
    executor::MetricsFile* metrics, PlannedStep* step, Running* running,
    Replanned* first_plan);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_VERBS_RUN_TRAINING_H_
