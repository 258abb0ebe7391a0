// One function per family of kernels; kernels.cc collects them into the table.
// A family's file holds everything about its operators on the CPU.
#ifndef LOADLINE_EXECUTOR_CPU_FAMILIES_H_
#define LOADLINE_EXECUTOR_CPU_FAMILIES_H_

#include "absl/types/span.h"
#include "executor/cpu/prepare.h"

namespace loadline::executor::cpu {

absl::Span<const KernelEntry> PointwiseKernels();
absl::Span<const KernelEntry> CurveKernels();
absl::Span<const KernelEntry> CastKernels();
absl::Span<const KernelEntry> BroadcastKernels();
absl::Span<const KernelEntry> ReduceKernels();
absl::Span<const KernelEntry> AlongAxisKernels();
absl::Span<const KernelEntry> TransposeKernels();
absl::Span<const KernelEntry> ShapeKernels();
absl::Span<const KernelEntry> GatherKernels();
absl::Span<const KernelEntry> MatMulKernels();
absl::Span<const KernelEntry> GemmGradientKernels();
absl::Span<const KernelEntry> ConvKernels();
absl::Span<const KernelEntry> BatchNormKernels();
absl::Span<const KernelEntry> LayerNormKernels();
absl::Span<const KernelEntry> SoftmaxKernels();
absl::Span<const KernelEntry> AttentionKernels();
absl::Span<const KernelEntry> PoolKernels();
absl::Span<const KernelEntry> DropoutKernels();
absl::Span<const KernelEntry> CodecKernels();
absl::Span<const KernelEntry> LossKernels();
absl::Span<const KernelEntry> OptimizerKernels();
absl::Span<const KernelEntry> AdafactorKernels();
absl::Span<const KernelEntry> GradientNormKernels();
absl::Span<const KernelEntry> QuantizeKernels();

}  // namespace loadline::executor::cpu

#endif  // LOADLINE_EXECUTOR_CPU_FAMILIES_H_
