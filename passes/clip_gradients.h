// Appends the factor that clips the gradients by their global norm, as
// torch.nn.utils.clip_grad_norm_ does:
//
//   a.grad, b.grad  ->  factor = min(1, max_norm / (|(a.grad, b.grad)| + 1e-6))
//
// The optimizer's nodes multiply with it, so that no gradient is written again.
// Every gradient lives until the last one is known.
#ifndef LOADLINE_PASSES_CLIP_GRADIENTS_H_
#define LOADLINE_PASSES_CLIP_GRADIENTS_H_

#include "absl/status/statusor.h"
#include "models/graph.h"
#include "passes/add_gradients.h"

namespace loadline::passes {

// Returns the factor, an f32[]. `gradients` must not be empty. Errors: those of
// adding nodes.
absl::StatusOr<models::ValueId> AddClipFactor(models::Graph& graph,
                                              const Gradients& gradients,
                                              double max_norm);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_CLIP_GRADIENTS_H_
