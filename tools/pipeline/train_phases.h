// Trains a model under a recipe, phase by phase.
#ifndef LOADLINE_TOOLS_PIPELINE_TRAIN_PHASES_H_
#define LOADLINE_TOOLS_PIPELINE_TRAIN_PHASES_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "executor/device/device.h"
#include "executor/train/train.h"
#include "models/graph.h"
#include "passes/compress/phase_model.h"
#include "passes/compress/recipe.h"
#include "tools/pipeline/evaluate_phase.h"
#include "tools/pipeline/phase_record.h"
#include "tools/pipeline/planned_step.h"
#include "tools/pipeline/replan.h"

namespace loadline::tools {

struct PhasedRun {
  StepFlags step;
  std::string recipe_path;
  int64_t steps = 0;  // 0: those of `epochs`
  int64_t epochs = 1;
  bool poison = false;  // LoadOptions::poison
  bool exports =
      false;  // check beforehand that the pruned model can be written
  // The device of one phase; the one before is destroyed first.
  std::function<absl::StatusOr<std::unique_ptr<executor::Device>>()> device;
  // The learning rates of a run of so many steps. Empty: train.learning_rate.
  std::function<absl::StatusOr<executor::Schedule>(int64_t steps)> schedule;
  // Data to evaluate at the end of each phase and every `eval_every` steps (0:
  // once for each pass over the training data). Empty: do not.
  std::string eval_data;
  int64_t eval_every = 0;
  // Called after each evaluation. May be empty.
  std::function<void(const PhaseEvaluation&)> evaluated;
  // Called when everything is checked, before the first step, with the steps
  // that are done; `evaluates_again`: the evaluations of the last of them are
  // made in this call. An error ends the run. May be empty.
  std::function<absl::Status(int64_t done, bool evaluates_again)> begins;
  // Called before a change of phase or an evaluation, with
  // TrainResult::rescue_path: may the model's file be read again? An error ends
  // the run. May be empty.
  std::function<absl::Status(const std::string& rescue_path)> goes_on;
  // Everything but steps, notes and the hooks of phases.
  executor::TrainOptions train;
};

struct PhasedResult {
  passes::Recipe recipe;
  std::vector<PhaseRecord> phases;  // those that ran, the last one at its end
  PhaseRecord before;               // figures of the model as it was
  std::vector<double> targets;      // sparsity at the end, by entry
  std::vector<std::string> left_out;
  std::vector<PhaseEvaluation> evaluations;  // of this call
  executor::TrainResult train;  // losses of all phases of this call
  // Of the last phase that ran.
  PlannedStep step;
  models::Graph model;  // the pruned model, without trained contents
  RunState state;       // its trained parameters and states
  // Of the quantize entries, for the export; empty without any. `file_names`:
  // passes::FileNames of the model's file.
  std::vector<passes::QuantizedTensor> quantizers;
  models::Graph quantized_graph;  // the types of their values
  std::map<std::string, std::vector<std::string>> file_names;
  // What each phase's end removed, for the checkpoint and the export.
  std::vector<passes::RemovedChannels> removed;
};

// Each phase is planned and verified at its own start within the bytes of the
// first. At its end the device and its arena are freed before the next one's
// are made; parameters, statistics and optimizer states wait in host memory,
// without the indices that go. A resumed run has the same bits as one that
// never stopped, and begins with the evaluation that was interrupted. Errors:
// those of planning and training; FailedPrecondition for a checkpoint of
// another recipe; InvalidArgument for settings that a recipe excludes.
absl::StatusOr<PhasedResult> TrainPhases(const PhasedRun& run,
                                         const std::atomic<bool>* stop);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_TRAIN_PHASES_H_
