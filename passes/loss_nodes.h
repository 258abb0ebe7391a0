// The nodes of losses that are no operator of their own. All are means, and
// have torch.nn.functional's values and gradients.
#ifndef LOADLINE_PASSES_LOSS_NODES_H_
#define LOADLINE_PASSES_LOSS_NODES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "models/graph.h"

namespace loadline::passes {

// l1_loss: mean |prediction - target|.
absl::StatusOr<models::ValueId> AddL1Loss(models::Graph& graph,
                                          models::ValueId prediction,
                                          models::ValueId target);

// huber_loss: with d = prediction - target, the mean of d^2 / 2 where
// |d| <= delta, else of delta (|d| - delta / 2).
absl::StatusOr<models::ValueId> AddHuberLoss(models::Graph& graph,
                                             models::ValueId prediction,
                                             models::ValueId target,
                                             double delta);

// binary_cross_entropy_with_logits: the mean of softplus(x) - x target for
// logits x.
absl::StatusOr<models::ValueId> AddBceLoss(models::Graph& graph,
                                           models::ValueId logits,
                                           models::ValueId target);

// cross_entropy with label_smoothing: (1 - smoothing) times the given loss,
// which is that without smoothing, plus smoothing times the mean over targets
// and classes of -log_softmax(logits). Targets of -100 are left out. With
// weights of classes that is the sum over targets of the mean over classes of
// -weight log_softmax(logits), divided by the sum of the targets' weights.
// `operands` are those of SoftmaxCrossEntropy.
absl::StatusOr<models::ValueId> AddLabelSmoothing(
    models::Graph& graph, models::ValueId loss,
    const std::vector<models::ValueId>& operands, int64_t class_axis,
    double smoothing);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_LOSS_NODES_H_
