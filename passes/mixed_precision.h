// Makes the model compute in bf16: matrix products, convolutions, attention,
// normalizations and pointwise operators read and write bf16, everything else
// stays f32. Parameters stay f32 and are cast once per step, so that gradients
// reach the optimizer as f32.
//
//   y = MatMul(x, w)             x.bf16 = Cast(x)
//   loss = MseLoss(y, t)   ->    w.bf16 = Cast(w)
//                                y = MatMul(x.bf16, w.bf16)     bf16
//                                loss = MseLoss(Cast(y), t)     f32
//
// Must run before gradients are added, since the backward pass follows the
// forward one. Statistics of normalizations, log-sum-exps, and the loss with
// its inputs are f32; kernels sum in f32.
#ifndef LOADLINE_PASSES_MIXED_PRECISION_H_
#define LOADLINE_PASSES_MIXED_PRECISION_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/graph.h"

namespace loadline::passes {

enum class Precision { kF32, kBF16 };

// "fp32" or "bf16"; InvalidArgument for anything else.
absl::StatusOr<Precision> PrecisionFromName(absl::string_view name);

absl::Status MixedPrecision(models::Graph& graph);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_MIXED_PRECISION_H_
