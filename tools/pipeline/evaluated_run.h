// Training that stops every so many steps to evaluate the weights that it has
// reached on other data.
#ifndef LOADLINE_TOOLS_PIPELINE_EVALUATED_RUN_H_
#define LOADLINE_TOOLS_PIPELINE_EVALUATED_RUN_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/train/evaluate.h"
#include "executor/train/train.h"
#include "tools/pipeline/evaluation.h"
#include "tools/pipeline/replan.h"

namespace loadline::tools {

using Notes = std::map<std::string, std::string>;  // of a checkpoint

// The evaluations so far, as far as the rest of the run depends on them.
struct EvaluationHistory {
  int64_t last_step = -1;  // of the last evaluation; -1: none
  double best_loss = std::numeric_limits<double>::infinity();
  int64_t best_step = -1;
  int64_t without_gain = 0;  // evaluations since

  // Whether the loss is the smallest so far. A loss that is NaN is none.
  bool Add(int64_t step, double loss);
  // Losses as their bits, so that a resumed run compares the same numbers.
  Notes ToNotes() const;
  // What is missing or malformed is as if nothing was evaluated.
  static EvaluationHistory FromNotes(const Notes& notes);
};

struct EvaluatedRunOptions {
  int64_t steps = 0;       // of the whole run
  int64_t first_step = 0;  // already done
  int64_t every = 0;       // steps between evaluations; the last step has one
  int64_t patience = 0;    // evaluations without gain that end the run; 0: none
  EvaluationHistory history;  // of the first steps
};

// What TrainEvaluated needs of the run. Each may fail, which ends the call.
struct EvaluatedRunActions {
  // Trains `most_steps` steps, which may be 0, of the program that is loaded.
  std::function<absl::StatusOr<executor::TrainResult>(
      int64_t first_step, int64_t most_steps, const Notes& notes)>
      train;
  // The state of the program, which is freed with its device.
  std::function<absl::StatusOr<RunState>()> unload;
  // Loads it again.
  std::function<absl::Status(RunState state)> load;
  std::function<absl::StatusOr<executor::Evaluation>(const RunState&)> evaluate;
  // After an evaluation; `best`: its loss is the smallest so far.
  std::function<absl::Status(int64_t step, const executor::Evaluation&,
                             bool best, const RunState&)>
      evaluated;
  // Saves a checkpoint, when the run ends early or is interrupted.
  std::function<absl::Status(int64_t step, const Notes& notes)> save;
};

// Trains and evaluates in turns. The result is that of all parts; its times are
// of training only. After it the program is loaded.
absl::StatusOr<executor::TrainResult> TrainEvaluated(
    const EvaluatedRunOptions& options, const EvaluatedRunActions& actions);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_EVALUATED_RUN_H_
