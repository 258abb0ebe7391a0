// Gather, its gradient, Scatter and ScatterReduce. GatherGrad adds and
// ScatterReduce multiplies in index order, and threads divide the columns but
// not the rows, so repeated indices always round the same. Tested in
// tests/conformance/.
#include <cstring>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "executor/cpu/families.h"
#include "executor/cpu/parallel.h"
#include "executor/ops/arithmetic.h"
#include "executor/ops/dispatch.h"
#include "executor/ops/operator_shapes.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cpu {
namespace {

constexpr int64_t kScatterBytes = 256;  // of a row that one thread writes

template <typename Index>
absl::Status CheckIndices(const Index* indices, const GatherLayout& l,
                          const std::string& name) {
  for (int64_t i = 0; i < l.count; ++i) {
    const int64_t row = GatherRow(indices[i], l.data.size);
    if (row < 0 || row >= l.data.size) {
      return absl::OutOfRangeError(absl::StrCat(
          "node ", name, ": index ", int64_t{indices[i]}, " at position ", i,
          " is outside [0, ", l.data.size, ")"));
    }
  }
  return absl::OkStatus();
}

PreparedKernel Gather(const Prepare& p) {
  const GatherLayout layout = MakeGatherLayout(p, p.input(0));
  const int64_t bytes =
      layout.data.inner * models::DTypeBytes(p.input(0).dtype);
  return WithIndex(p, p.input(1).dtype, [&](auto type) -> PreparedKernel {
    using Index = decltype(type);
    return MakeKernel([layout, bytes,
                       name = p.node().name](const KernelArgs& args) {
      const Index* indices = In<Index>(args, 1);
      LOADLINE_RETURN_IF_ERROR(CheckIndices(indices, layout, name));
      const std::byte* data = args.inputs[0];
      std::byte* y = args.outputs[0];
      ParallelEach(
          layout.data.outer * layout.count, bytes / 4 + 1, [&](int64_t unit) {
            const int64_t outer = unit / layout.count;
            const int64_t row =
                GatherRow(indices[unit % layout.count], layout.data.size);
            std::memcpy(y + unit * bytes,
                        data + (outer * layout.data.size + row) * bytes, bytes);
          });
      return absl::OkStatus();
    });
  });
}

// Columns [begin, end) of every row.
template <typename Index>
void ScatterColumns(const GatherLayout& l, const float* dy,
                    const Index* indices, float* dx, int64_t begin,
                    int64_t end) {
  const int64_t inner = l.data.inner;
  for (int64_t outer = 0; outer < l.data.outer; ++outer) {
    float* block = dx + outer * l.data.size * inner;
    for (int64_t row = 0; row < l.data.size; ++row) {
      std::fill(block + row * inner + begin, block + row * inner + end, 0.0f);
    }
    for (int64_t i = 0; i < l.count; ++i) {
      float* to = block + GatherRow(indices[i], l.data.size) * inner;
      const float* from = dy + (outer * l.count + i) * inner;
#pragma omp simd
      for (int64_t j = begin; j < end; ++j) to[j] += from[j];
    }
  }
}

PreparedKernel GatherGrad(const Prepare& p) {
  if (p.output(0).dtype != DType::kF32) {
    return p.Unsupported(p.output(0).dtype);
  }
  const GatherLayout layout = MakeGatherLayout(p, p.output(0));
  return WithIndex(p, p.input(1).dtype, [&](auto type) -> PreparedKernel {
    using Index = decltype(type);
    return MakeKernel([layout, name = p.node().name](const KernelArgs& args) {
      const Index* indices = In<Index>(args, 1);
      LOADLINE_RETURN_IF_ERROR(CheckIndices(indices, layout, name));
      const AxisSplit& data = layout.data;
      const bool small =
          data.outer * (layout.count + data.size) * data.inner < kElementBlock;
      ParallelFor(data.inner, small ? data.inner : 64,
                  [&](int64_t begin, int64_t end) {
                    ScatterColumns(layout, In(args, 0), indices, Out(args, 0),
                                   begin, end);
                  });
      return absl::OkStatus();
    });
  });
}

// Copies data, then writes the updates in their order: the last one stays.
// Threads divide the columns, so that the order holds in each.
PreparedKernel Scatter(const Prepare& p) {
  const GatherLayout layout = MakeGatherLayout(p, p.input(0));
  const int64_t bytes =
      layout.data.inner * models::DTypeBytes(p.input(0).dtype);
  return WithIndex(p, p.input(1).dtype, [&](auto type) -> PreparedKernel {
    using Index = decltype(type);
    return MakeKernel(
        [layout, bytes, name = p.node().name](const KernelArgs& args) {
          const Index* indices = In<Index>(args, 1);
          LOADLINE_RETURN_IF_ERROR(CheckIndices(indices, layout, name));
          const std::byte* data = args.inputs[0];
          const std::byte* updates = args.inputs[2];
          std::byte* y = args.outputs[0];
          if (y != data && bytes > 0) {
            std::memcpy(y, data, layout.data.size * bytes);
          }
          const int64_t block =
              layout.count * bytes < kElementBlock ? bytes : kScatterBytes;
          ParallelFor(bytes, block, [&](int64_t begin, int64_t end) {
            for (int64_t i = 0; i < layout.count; ++i) {
              std::memcpy(
                  y + GatherRow(indices[i], layout.data.size) * bytes + begin,
                  updates + i * bytes + begin, end - begin);
            }
          });
          return absl::OkStatus();
        });
  });
}

// Columns [begin, end) of the updates, each combined with its row of y.
template <typename Combine, typename Index>
void CombineColumns(const GatherLayout& l, const Index* indices,
                    const float* updates, float* y, int64_t begin,
                    int64_t end) {
  for (int64_t i = 0; i < l.count; ++i) {
    float* to = y + GatherRow(indices[i], l.data.size) * l.data.inner;
    const float* from = updates + i * l.data.inner;
#pragma omp simd
    for (int64_t j = begin; j < end; ++j) to[j] = Combine()(to[j], from[j]);
  }
}

template <typename Combine>
PreparedKernel MakeScatterReduce(const Prepare& p) {
  const GatherLayout layout = MakeGatherLayout(p, p.input(0));
  return WithIndex(p, p.input(1).dtype, [&](auto type) -> PreparedKernel {
    using Index = decltype(type);
    return MakeKernel([layout, name = p.node().name](const KernelArgs& args) {
      const Index* indices = In<Index>(args, 1);
      LOADLINE_RETURN_IF_ERROR(CheckIndices(indices, layout, name));
      const float* data = In(args, 0);
      float* y = Out(args, 0);
      const int64_t inner = layout.data.inner;
      if (y != data) std::copy(data, data + layout.data.size * inner, y);
      const bool small = layout.count * inner < kElementBlock;
      ParallelFor(inner, small ? inner : 64, [&](int64_t begin, int64_t end) {
        CombineColumns<Combine>(layout, indices, In(args, 2), y, begin, end);
      });
      return absl::OkStatus();
    });
  });
}

PreparedKernel ScatterReduce(const Prepare& p) {
  const std::string reduction = p.node().attributes.String("reduction", "");
  if (reduction == "max") return MakeScatterReduce<MaxOf>(p);
  if (reduction == "min") return MakeScatterReduce<MinOf>(p);
  return MakeScatterReduce<std::multiplies<float>>(p);
}

constexpr KernelEntry kGatherKernels[] = {{"Gather", Gather},
                                          {"GatherGrad", GatherGrad},
                                          {"Scatter", Scatter},
                                          {"ScatterReduce", ScatterReduce}};

}  // namespace

absl::Span<const KernelEntry> GatherKernels() { return kGatherKernels; }

}  // namespace loadline::executor::cpu
