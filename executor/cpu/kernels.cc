// The table of CPU kernels: families joined, looked up by the operator's name.
// Every operator is tested in tests/conformance/.
#include "executor/cpu/kernels.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "executor/cpu/families.h"
#include "executor/cpu/prepare.h"

namespace loadline::executor {
namespace {

using Table = std::map<absl::string_view, cpu::KernelEntry>;

const Table& KernelTable() {
  static const Table* table = [] {
    auto* made = new Table;
    for (absl::Span<const cpu::KernelEntry> family :
         {cpu::PointwiseKernels(), cpu::CastKernels(), cpu::BroadcastKernels(),
          cpu::ReduceKernels(), cpu::TransposeKernels(), cpu::ShapeKernels(),
          cpu::GatherKernels(), cpu::MatMulKernels(), cpu::ConvKernels(),
          cpu::BatchNormKernels(), cpu::LayerNormKernels(),
          cpu::SoftmaxKernels(), cpu::PoolKernels(), cpu::DropoutKernels(),
          cpu::LossKernels(), cpu::OptimizerKernels()}) {
      for (const cpu::KernelEntry& entry : family) {
        made->emplace(entry.op, entry);
      }
    }
    return made;
  }();
  return *table;
}

}  // namespace

bool HasCpuKernel(absl::string_view op) { return KernelTable().count(op) > 0; }

absl::StatusOr<std::unique_ptr<Kernel>> PrepareCpuKernel(
    const models::Graph& graph, const models::Node& node) {
  const auto it = KernelTable().find(node.op);
  if (it == KernelTable().end()) {
    return absl::UnimplementedError(absl::StrCat(
        "no CPU kernel for operator ", node.op, " (node ", node.name, ")"));
  }
  return it->second.prepare(cpu::Prepare(graph, node));
}

namespace cpu {

absl::Status Prepare::Unsupported(DType dtype) const {
  return absl::UnimplementedError(
      absl::StrCat("no CPU kernel for ", node_.op, " of type ",
                   models::DTypeName(dtype), " (node ", node_.name, ")"));
}

absl::Status Prepare::AllF32() const {
  for (int i = 0; i < inputs(); ++i) {
    if (has_input(i) && input(i).dtype != DType::kF32) {
      return Unsupported(input(i).dtype);
    }
  }
  for (int i = 0; i < outputs(); ++i) {
    if (output(i).dtype != DType::kF32) return Unsupported(output(i).dtype);
  }
  return absl::OkStatus();
}

absl::Status Prepare::Invalid(absl::string_view what) const {
  return absl::InvalidArgumentError(
      absl::StrCat(node_.op, " (node ", node_.name, "): ", what));
}

int64_t Elements(absl::Span<const int64_t> dims, int64_t begin, int64_t end) {
  int64_t n = 1;
  for (int64_t i = begin; i < end; ++i) n *= dims[i];
  return n;
}

Ints DenseStrides(absl::Span<const int64_t> dims) {
  Ints strides(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return strides;
}

AxisSplit SplitAt(absl::Span<const int64_t> dims, int64_t axis) {
  const int64_t rank = static_cast<int64_t>(dims.size());
  axis = PositiveAxis(axis, rank);
  return {Elements(dims, 0, axis), dims[axis], Elements(dims, axis + 1, rank)};
}

}  // namespace cpu
}  // namespace loadline::executor
