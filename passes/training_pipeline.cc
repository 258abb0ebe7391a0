// Simplify before differentiating, because a fused node has a cheaper gradient
// than its parts. Simplify again afterwards, because gradient rules see only
// their own node and emit duplicates and transposes. Split last, when all
// operators of a chain are known, and cut updates when it is known what else
// needs as many bytes. Tested in tests/passes/training_pipeline_test.cc.
#include "passes/training_pipeline.h"

#include "passes/add_gradients.h"
#include "passes/cut_batch.h"
#include "passes/cut_updates.h"
#include "passes/drop_softmax_guards.h"
#include "passes/fuse_attention.h"
#include "passes/fuse_bias.h"
#include "passes/fuse_bias_gradient.h"
#include "passes/fuse_gelu.h"
#include "passes/fuse_gelu_gradient.h"
#include "passes/fuse_transpose.h"
#include "passes/mask_relu_gradient.h"
#include "passes/merge_duplicates.h"
#include "passes/narrow_constants.h"
#include "passes/remove_dead_nodes.h"
#include "passes/remove_dropout.h"
#include "passes/remove_unread_inputs.h"
#include "passes/repeat_micro_batches.h"
#include "passes/use_running_statistics.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::Graph;

absl::Status Simplify(PassRunner& runner, Graph& graph) {
  const auto run = [&](absl::string_view name, auto pass) {
    return runner.Run(name, PassNeed::kOptional, pass, graph);
  };
  LOADLINE_RETURN_IF_ERROR(run("remove_dead_nodes", RemoveDeadNodes));
  LOADLINE_RETURN_IF_ERROR(run("narrow_constants", NarrowConstants));
  LOADLINE_RETURN_IF_ERROR(run("merge_duplicates", MergeDuplicates));
  LOADLINE_RETURN_IF_ERROR(run("drop_softmax_guards", DropSoftmaxGuards));
  LOADLINE_RETURN_IF_ERROR(run("fuse_gelu", FuseGelu));
  LOADLINE_RETURN_IF_ERROR(run("fuse_attention", FuseAttention));
  LOADLINE_RETURN_IF_ERROR(run("fuse_transpose", FuseTranspose));
  return run("fuse_bias", FuseBias);
}

}  // namespace

absl::StatusOr<Graph> BuildTrainingStep(Graph model,
                                        const TrainingOptions& options,
                                        const PassOptions& passes) {
  Graph graph = std::move(model);
  Gradients gradients;
  PassRunner runner(passes);
  const auto require = [&](absl::string_view name, auto pass) {
    return runner.Run(name, PassNeed::kRequired, pass, graph);
  };

  LOADLINE_RETURN_IF_ERROR(require("remove_dropout", [&](Graph& g) {
    return RemoveDropout(
        g, options.no_dropout ? Dropouts::kAll : Dropouts::kOfRatioZero);
  }));
  if (options.lora.has_value()) {
    LOADLINE_RETURN_IF_ERROR(require(
        "add_lora", [&](Graph& g) { return AddLora(g, *options.lora); }));
  }
  LOADLINE_RETURN_IF_ERROR(
      require("add_loss", [&](Graph& g) { return AddLoss(g, options.loss); }));
  LOADLINE_RETURN_IF_ERROR(require("remove_unread_inputs", RemoveUnreadInputs));
  LOADLINE_RETURN_IF_ERROR(require("cut_batch", [&](Graph& g) {
    return CutBatch(g, options.micro_batches, options.statistics);
  }));
  LOADLINE_RETURN_IF_ERROR(Simplify(runner, graph));
  if (options.precision != Precision::kF32) {
    LOADLINE_RETURN_IF_ERROR(require("mixed_precision", [&](Graph& g) {
      return MixedPrecision(g, options.precision);
    }));
  }
  LOADLINE_RETURN_IF_ERROR(require("add_gradients", [&](Graph& g) {
    absl::StatusOr<Gradients> added = AddGradients(g, g.outputs[0]);
    if (!added.ok()) return added.status();
    gradients = *std::move(added);
    return absl::OkStatus();
  }));
  if (!options.masks.empty()) {
    if (options.micro_batches != 1) {
      return absl::InvalidArgumentError(
          "micro-batches cannot be combined with the masks of a recipe");
    }
    LOADLINE_RETURN_IF_ERROR(require("add_masks", [&](Graph& g) {
      return AddMasks(g, options.masks, &gradients);
    }));
  }
  LOADLINE_RETURN_IF_ERROR(require("add_optimizer", [&](Graph& g) {
    return AddOptimizer(g, gradients, options.optimizer);
  }));
  LOADLINE_RETURN_IF_ERROR(Simplify(runner, graph));
  LOADLINE_RETURN_IF_ERROR(runner.Run("fuse_gelu_gradient", PassNeed::kOptional,
                                      FuseGeluGradient, graph));
  LOADLINE_RETURN_IF_ERROR(runner.Run("fuse_bias_gradient", PassNeed::kOptional,
                                      FuseBiasGradient, graph));
  LOADLINE_RETURN_IF_ERROR(runner.Run(
      "split_operators", PassNeed::kOptional,
      [&](Graph& g) { return SplitOperators(g, options.splits); }, graph));
  LOADLINE_RETURN_IF_ERROR(require("repeat_micro_batches", [&](Graph& g) {
    return RepeatMicroBatches(g, options.micro_batches);
  }));
  LOADLINE_RETURN_IF_ERROR(runner.Run("mask_relu_gradient", PassNeed::kOptional,
                                      MaskReluGradient, graph));
  LOADLINE_RETURN_IF_ERROR(runner.Run(
      "cut_updates", PassNeed::kOptional,
      [&](Graph& g) {
        return options.whole_updates ? absl::OkStatus() : CutUpdates(g);
      },
      graph));
  LOADLINE_RETURN_IF_ERROR(runner.Finish());
  return graph;
}

absl::StatusOr<Graph> BuildEvaluation(Graph model, const LossOptions& loss,
                                      const PassOptions& passes) {
  Graph graph = std::move(model);
  LossOptions counted = loss;
  counted.count_correct = loss.kind == LossKind::kCrossEntropy;
  PassRunner runner(passes);
  const auto require = [&](absl::string_view name, auto pass) {
    return runner.Run(name, PassNeed::kRequired, pass, graph);
  };

  LOADLINE_RETURN_IF_ERROR(require("remove_dropout", [](Graph& g) {
    return RemoveDropout(g, Dropouts::kAll);
  }));
  LOADLINE_RETURN_IF_ERROR(
      require("add_loss", [&](Graph& g) { return AddLoss(g, counted); }));
  LOADLINE_RETURN_IF_ERROR(require("remove_unread_inputs", RemoveUnreadInputs));
  LOADLINE_RETURN_IF_ERROR(
      require("use_running_statistics", UseRunningStatistics));
  LOADLINE_RETURN_IF_ERROR(Simplify(runner, graph));
  LOADLINE_RETURN_IF_ERROR(runner.Finish());
  return graph;
}

absl::StatusOr<LossReduction> ReductionOfEvaluation(Graph model,
                                                    const LossOptions& loss) {
  if (loss.kind == LossKind::kCrossEntropy) {
    return LossReduction::kMeanOfTargets;
  }
  if (loss.kind != LossKind::kModel) return LossReduction::kMean;
  LOADLINE_RETURN_IF_ERROR(RemoveDropout(model, Dropouts::kAll));
  LOADLINE_RETURN_IF_ERROR(AddLoss(model, loss));
  LOADLINE_RETURN_IF_ERROR(UseRunningStatistics(model));
  return FindLossReduction(std::move(model));
}

absl::StatusOr<Graph> BuildCalibration(Graph model, const PassOptions& passes) {
  Graph graph = std::move(model);
  PassRunner runner(passes);
  LOADLINE_RETURN_IF_ERROR(runner.Run(
      "remove_dropout", PassNeed::kRequired,
      [](Graph& g) { return RemoveDropout(g, Dropouts::kAll); }, graph));
  LOADLINE_RETURN_IF_ERROR(Simplify(runner, graph));
  LOADLINE_RETURN_IF_ERROR(runner.Finish());
  return graph;
}

}  // namespace loadline::passes
