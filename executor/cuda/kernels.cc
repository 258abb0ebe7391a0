// The table of CUDA kernels. Every operator is tested in tests/conformance/.
#include "executor/cuda/kernels.h"

#include "executor/cuda/families.h"
#include "executor/ops/kernel_table.h"

namespace loadline::executor {
namespace {

const KernelTable<cuda::Prepare>& Kernels() {
  static const auto* table = new KernelTable<cuda::Prepare>(
      {cuda::PointwiseKernels(),    cuda::CurveKernels(),
       cuda::CastKernels(),         cuda::BroadcastKernels(),
       cuda::ReduceKernels(),       cuda::AlongAxisKernels(),
       cuda::TransposeKernels(),    cuda::ShapeKernels(),
       cuda::GatherKernels(),       cuda::BatchNormKernels(),
       cuda::LayerNormKernels(),    cuda::SoftmaxKernels(),
       cuda::PoolKernels(),         cuda::AttentionKernels(),
       cuda::DropoutKernels(),      cuda::LossKernels(),
       cuda::OptimizerKernels(),    cuda::MatMulKernels(),
       cuda::GemmGradientKernels(), cuda::ConvKernels(),
       cuda::GradientNormKernels(), cuda::QuantizeKernels(),
       cuda::CodecKernels(),        cuda::AdafactorKernels()});
  return *table;
}

}  // namespace

bool HasCudaKernel(absl::string_view op) { return Kernels().Has(op); }

PreparedKernel PrepareCudaKernel(const models::Graph& graph,
                                 const models::Node& node) {
  return Kernels().Make(cuda::Prepare(graph, node));
}

}  // namespace loadline::executor
