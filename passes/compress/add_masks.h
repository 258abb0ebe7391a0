// Keeps the masked parts of parameters at zero during training, and accumulates
// scores of channels from weights and gradients.
//
//   w.grad                        ->   w.grad.masked = Mul(w.grad, w.mask0)
//   w, w.grad  (taylor, axis 0)  ->   w.taylor0' = Add(w.taylor0,
//                                        Abs(ReduceSum(Mul(w, w.grad))))
//                                      update w.taylor0 -> w.taylor0'
//
// A mask has the parameter's rank and its size along one axis, else 1, such as
// f32[64,1,1,1]; or the parameter's own shape. It is a state of ones that the
// training loop writes between steps. When it clears a part of a mask, it also
// clears that part of the parameter and of its optimizer states. From then on
// the part's gradient is zero, so every optimizer whose update of a zero weight
// with zero states and a zero gradient is zero keeps it at zero: momentum and
// decay revive nothing. Sgd does so, and AdamW with an epsilon above zero.
#ifndef LOADLINE_PASSES_COMPRESS_ADD_MASKS_H_
#define LOADLINE_PASSES_COMPRESS_ADD_MASKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "models/graph.h"
#include "passes/add_gradients.h"
#include "passes/compress/recipe.h"

namespace loadline::passes {

// An axis of a parameter; kWholeTensor: each of its elements by itself.
inline constexpr int64_t kWholeTensor = -1;
struct MaskedAxis {
  std::string parameter;
  int64_t axis = kWholeTensor;
  // Accumulates these criteria's scores of each index of the axis.
  std::vector<PruneCriterion> scores;
};

// Whether the scores of a criterion need gradients, so that the graph
// accumulates them; others are computed from the weights alone.
bool NeedsGradients(PruneCriterion criterion);

// The states that AddMasks adds.
// "conv1.weight.mask0", "conv1.weight.taylor0"; without the number for a whole
// tensor.
std::string MaskName(absl::string_view parameter, int64_t axis);
std::string ScoreName(absl::string_view parameter, int64_t axis,
                      PruneCriterion criterion);

// Runs between AddGradients and AddOptimizer. Replaces gradients in
// `*gradients`. Parameters without a gradient are left out: nothing updates
// them. Errors: InvalidArgument (no such parameter or axis, or an existing
// value with a state's name).
absl::Status AddMasks(models::Graph& graph, const std::vector<MaskedAxis>& axes,
                      Gradients* gradients);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_COMPRESS_ADD_MASKS_H_
