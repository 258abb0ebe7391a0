// The table of CPU kernels. Every operator is tested in tests/conformance/.
#include "executor/cpu/kernels.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "executor/cpu/families.h"
#include "executor/ops/kernel_table.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {
namespace {

const KernelTable<Prepare>& Kernels() {
  static const auto* table = new KernelTable<Prepare>(
      {cpu::PointwiseKernels(),    cpu::CurveKernels(),
       cpu::CastKernels(),         cpu::BroadcastKernels(),
       cpu::ReduceKernels(),       cpu::AlongAxisKernels(),
       cpu::TransposeKernels(),    cpu::ShapeKernels(),
       cpu::GatherKernels(),       cpu::MatMulKernels(),
       cpu::GemmGradientKernels(), cpu::ConvKernels(),
       cpu::BatchNormKernels(),    cpu::LayerNormKernels(),
       cpu::SoftmaxKernels(),      cpu::AttentionKernels(),
       cpu::PoolKernels(),         cpu::DropoutKernels(),
       cpu::LossKernels(),         cpu::OptimizerKernels(),
       cpu::GradientNormKernels(), cpu::QuantizeKernels(),
       cpu::CodecKernels(),        cpu::AdafactorKernels()});
  return *table;
}

// oneDNN, and some of our kernels, count the lines of a tensor with 32 bits; a
// count that becomes 0 is a division by zero there. A line is along the last
// axis.
constexpr int64_t kMostLines = std::numeric_limits<int32_t>::max();

absl::Status CheckSize(const models::Node& node, const models::Value& value) {
  const std::vector<int64_t>& dims = value.type.dims;
  int64_t lines = 1;
  for (size_t i = 0; i + 1 < dims.size(); ++i) lines *= dims[i];
  if (lines <= kMostLines && (dims.empty() || dims.back() <= kMostLines)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "node ", node.name, ": '", value.name, "' is ", value.type.ToString(),
      "; the CPU's kernels take at most ", kMostLines,
      " numbers along the last axis, and so many lines of them: choose a "
      "smaller batch or shape"));
}

}  // namespace

bool HasCpuKernel(absl::string_view op) { return Kernels().Has(op); }

PreparedKernel PrepareCpuKernel(const models::Graph& graph,
                                const models::Node& node) {
  for (const auto* values : {&node.inputs, &node.outputs}) {
    for (const models::ValueId id : *values) {
      if (id == models::kNoValue) continue;
      LOADLINE_RETURN_IF_ERROR(CheckSize(node, graph.value(id)));
    }
  }
  return Kernels().Make(Prepare(graph, node, "CPU"));
}

}  // namespace loadline::executor
