// The training loop.
#ifndef LOADLINE_EXECUTOR_TRAIN_TRAIN_H_
#define LOADLINE_EXECUTOR_TRAIN_TRAIN_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "executor/program/program.h"
#include "executor/train/data.h"
#include "executor/train/schedule.h"

namespace loadline::executor {

struct TrainProgress {
  int64_t step = 0;  // steps done
  int64_t steps = 0;
  float loss = 0;
  float learning_rate = 0;    // of this step
  double examples_per_s = 0;  // since the start of this call
  double left_s = 0;
};

// What a double counts exactly: schedules compute in doubles.
inline constexpr int64_t kMostSteps = int64_t{1} << 53;

// `steps` if they are given (above 0), or those of so many epochs, at least
// one. InvalidArgument: more than kMostSteps.
absl::StatusOr<int64_t> StepsOfRun(int64_t steps, int64_t epochs,
                                   int64_t steps_per_epoch);

struct TrainOptions {
  int64_t steps = 0;  // total; a resumed run does the rest
  float learning_rate = 0;
  // Instead of `learning_rate`, which it then ignores.
  std::optional<Schedule> schedule;
  // Steps already done by another program whose persistent values this one took
  // over. Not with `resume`, which reads it from the checkpoint.
  int64_t first_step = 0;
  // Limit for this call; 0: no limit. Stopping before the last step of `steps`
  // saves nothing.
  int64_t most_steps = 0;
  // Stop when so many steps are done in all, to go on in another program; 0: do
  // not. Then a checkpoint is written, as the way to the next program may fail.
  int64_t pause_step = 0;
  uint64_t seed = 0;
  bool shuffle = true;
  // Empty: no checkpoints. Otherwise one every `checkpoint_interval` steps (0:
  // none of these), one when interrupted and one at the end.
  std::string checkpoint_path;
  int64_t checkpoint_interval = 0;
  // Without a checkpoint_path: asked after the last step of `steps`, and after
  // pause_step, where a checkpoint shall be written nevertheless, because the
  // caller cannot keep the result or go on otherwise. `ended`: it was the last
  // step. Paths in the order in which they are tried; none: there is no need.
  // May be empty.
  std::function<std::vector<std::string>(const models::Graph& graph,
                                         bool ended)>
      rescue_paths;
  // Start from the checkpoint at `checkpoint_path`, which must exist and come
  // from a run of the same model, seed, batch and shuffling. The result has the
  // same bits as an uninterrupted run.
  bool resume = false;
  // Saved with every checkpoint: RunPosition::notes. A checkpoint whose notes
  // of compression differ is not resumed from.
  std::map<std::string, std::string> notes;
  // DigestOfData of the run's data, saved with every checkpoint. Empty: Train
  // computes it if it may write one.
  std::string data_digest;
  // Set by a signal handler: the current step is finished, the checkpoint
  // written, and Train returns with `interrupted`. May be null.
  const std::atomic<bool>* stop = nullptr;
  // Called after each step. May be empty.
  std::function<void(const TrainProgress&)> progress;
  // Called when a checkpoint cannot be written; the run then goes on, unless it
  // is interrupted, and the result has the error. Empty: the run ends with it.
  std::function<void(const absl::Status&)> not_saved;
  // Called after each step, before a checkpoint of it, with the steps done: may
  // read and write persistent values. An error ends the run. May be empty.
  std::function<absl::Status(int64_t steps_done, Program& program)>
      between_steps;
};

struct TrainResult {
  int64_t first_step = 0;     // from the options or the checkpoint
  std::vector<float> losses;  // of the steps done in this call
  bool interrupted = false;
  // Median over the steps (of many, over a regular sample); 0 without any.
  int64_t step_ns = 0;
  // Median time from the end of a step, or the run's begin, in which the next
  // had no batch to begin with. Not part of step_ns.
  int64_t data_wait_ns = 0;
  double examples_per_s = 0;
  int64_t arena_bytes = 0;     // of the device
  int64_t device_bytes = 0;    // Device::UsedBytes after the last step
  std::string weights_sha256;  // checkpoint.h
  absl::Status unsaved;        // why the last checkpoint is not there
  std::string rescue_path;     // that of rescue_paths that was written
};

// The errors that Train would end with before its first step, from the graph
// alone: for callers that plan or measure for minutes before they train.
absl::Status CheckTrainable(const models::Graph& graph, const DataSet& data,
                            const TrainOptions& options);

// Trains `program` on `data`, whose columns are the program's inputs. The batch
// is the first axis of the graph's first input. Errors:
//   InvalidArgument    a loss, a parameter or an optimizer state that is NaN or
//                      infinite, naming the step; data shorter than one batch;
//                      an option out of range
//   NotFound, FailedPrecondition  no or a wrong checkpoint to resume from
// and those of Program::Step and SaveCheckpoint. After an error the last
// checkpoint is intact.
absl::StatusOr<TrainResult> Train(Program& program, const DataSet& data,
                                  const TrainOptions& options);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_TRAIN_TRAIN_H_
