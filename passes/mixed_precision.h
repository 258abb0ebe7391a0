// Lets the model compute in bf16: matrix products, convolutions, attention,
// normalizations and what is pointwise read and write bf16, whatever else there
// is stays f32. Parameters stay f32; a cast of each stands in its place, once
// in a step, so that gradients arrive at the optimizer as f32.
//
//   y = MatMul(x, w)             x.bf16 = Cast(x)
//   loss = MseLoss(y, t)   ->    w.bf16 = Cast(w)
//                                y = MatMul(x.bf16, w.bf16)     bf16
//                                loss = MseLoss(Cast(y), t)     f32
//
// Runs before gradients are added: the backward pass follows from the forward
// one. Statistics of normalizations, log-sum-exps, the loss and what it is
// computed from are f32; kernels sum in f32.
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
