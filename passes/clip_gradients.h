// Clips the gradients by their global norm, as torch.nn.utils.clip_grad_norm_
// does:
//
//   a' = Sgd(a, a.grad)         factor = min(1, max_norm / (norm + 1e-6))
//   b' = Sgd(b, b.grad)    ->   a' = Sgd(a, a.grad, _, factor)
//                               b' = Sgd(b, b.grad, _, factor)
//
// where norm is that of all gradients together. The optimizer's nodes multiply
// with the factor, so no gradient is written again; but every gradient lives
// until the last one is known. Runs after RepeatMicroBatches: the norm is that
// of the sums.
#ifndef LOADLINE_PASSES_CLIP_GRADIENTS_H_
#define LOADLINE_PASSES_CLIP_GRADIENTS_H_

#include "absl/status/status.h"
#include "models/graph.h"

namespace loadline::passes {

// Errors: those of adding nodes.
absl::Status ClipGradients(models::Graph& graph, double max_norm);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_CLIP_GRADIENTS_H_
