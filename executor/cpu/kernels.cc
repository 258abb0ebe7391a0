// The table of CPU kernels. Every operator is tested in tests/conformance/.
#include "executor/cpu/kernels.h"

#include "executor/cpu/families.h"
#include "executor/ops/kernel_table.h"

namespace loadline::executor {
namespace {

const KernelTable<Prepare>& Kernels() {
  static const auto* table = new KernelTable<Prepare>(
      {cpu::PointwiseKernels(), cpu::CastKernels(), cpu::BroadcastKernels(),
       cpu::ReduceKernels(), cpu::TransposeKernels(), cpu::ShapeKernels(),
       cpu::GatherKernels(), cpu::MatMulKernels(), cpu::GemmGradientKernels(),
       cpu::ConvKernels(), cpu::BatchNormKernels(), cpu::LayerNormKernels(),
       cpu::SoftmaxKernels(), cpu::AttentionKernels(), cpu::PoolKernels(),
       cpu::DropoutKernels(), cpu::LossKernels(), cpu::OptimizerKernels()});
  return *table;
}

}  // namespace

bool HasCpuKernel(absl::string_view op) { return Kernels().Has(op); }

PreparedKernel PrepareCpuKernel(const models::Graph& graph,
                                const models::Node& node) {
  return Kernels().Make(Prepare(graph, node, "CPU"));
}

}  // namespace loadline::executor
