// From a model to the graph that runs: one function for a training step, one
// for an evaluation, each a list of passes to be read from top to bottom.
#ifndef LOADLINE_PASSES_TRAINING_PIPELINE_H_
#define LOADLINE_PASSES_TRAINING_PIPELINE_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "models/graph.h"
#include "models/ops/cut_axis.h"
#include "passes/add_lora.h"
#include "passes/add_loss.h"
#include "passes/add_optimizer.h"
#include "passes/compress/add_masks.h"
#include "passes/cut_batch.h"
#include "passes/mixed_precision.h"
#include "passes/pass_runner.h"
#include "passes/split_operators.h"

namespace loadline::passes {

struct TrainingOptions {
  LossOptions loss;
  OptimizerOptions optimizer;
  bool no_dropout = false;                // removes every dropout
  Precision precision = Precision::kF32;  // of the model's computation
  std::vector<MaskedAxis> masks;          // of a recipe's phase
  // Parts of the batch that run one after the other, their gradients added up
  // (cut_batch.h).
  int64_t micro_batches = 1;
  models::BatchStatistics statistics = models::BatchStatistics::kOfBatch;
  std::vector<Split> splits;  // chains that run in segments
  std::optional<LoraOptions> lora;
  // Keeps optimizer states as large as their parameters (cut_updates.h), as
  // pruning needs them.
  bool whole_updates = false;
};

// Forward pass, loss, backward pass and optimizer. The first output is the
// loss. Updates are those of the running statistics, then of parameters and
// optimizer states. Errors: those of AddLora, AddLoss, CutBatch, AddGradients,
// AddOptimizer, SplitOperators, RepeatMicroBatches and PassRunner.
absl::StatusOr<models::Graph> BuildTrainingStep(models::Graph model,
                                                const TrainingOptions& options,
                                                const PassOptions& passes);

// Forward pass and loss, with running statistics and without dropout or
// updates. The first output is the loss; for cross-entropy the second is the
// number of correct predictions in the batch, i64. Errors: those of AddLoss and
// PassRunner.
absl::StatusOr<models::Graph> BuildEvaluation(models::Graph model,
                                              const LossOptions& loss,
                                              const PassOptions& passes);

// How the losses of the batches of such an evaluation make that of all their
// examples. Errors: those of the passes before the batch is cut.
absl::StatusOr<LossReduction> ReductionOfEvaluation(models::Graph model,
                                                    const LossOptions& loss);

// Forward pass that observes ranges and trains nothing: its outputs are the
// model's, its updates those of the observers. `model`: with running statistics
// and after AddFakeQuantize in the stage kCalibrate. Errors: those of
// PassRunner.
absl::StatusOr<models::Graph> BuildCalibration(models::Graph model,
                                               const PassOptions& passes);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_TRAINING_PIPELINE_H_
