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

// kAutocast is kBF16, but values are f32 wherever PyTorch's autocast has f32:
// from an embedding, a layer normalization or a parameter that is no bias on,
// through sums and other elementwise operators. So the sum that layers add to
// is not rounded at each layer.
enum class Precision { kF32, kBF16, kAutocast };

// "fp32", "bf16" or "autocast"; InvalidArgument for anything else.
absl::StatusOr<Precision> PrecisionFromName(absl::string_view name);

// `precision` is not kF32.
absl::Status MixedPrecision(models::Graph& graph, Precision precision);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_MIXED_PRECISION_H_
