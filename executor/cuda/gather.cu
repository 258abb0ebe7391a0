// Gather, its gradient, Scatter and ScatterReduce. All but Gather sort the
// positions by row on the device. A row of GatherGrad's result then sums its
// own, in the order of positions and in float; a row of Scatter's takes its
// last one, and one of ScatterReduce's combines its own in their order. So
// equal indices always give the same bits, and nothing is added atomically. An
// index out of range is reported; it reads zeros and adds to no row. Tested in
// tests/conformance/.
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "executor/cuda/families.h"
#include "executor/cuda/launch.h"
#include "executor/cuda/nest.h"
#include "executor/cuda/numbers.h"
#include "executor/cuda/sort.h"
#include "executor/cuda/types.h"
#include "executor/ops/arithmetic.h"
#include "executor/ops/operator_shapes.h"
#include "planner/base/align.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cuda {
namespace {

DescribeFunction DescribeIndex(const Prepare& p, const GatherLayout& l) {
  return [name = p.node().name, size = l.data.size](int64_t position) {
    return absl::OutOfRangeError(
        absl::StrCat("node ", name, ": the index at position ", position,
                     " is outside [0, ", size, ")"));
  };
}

// Copies rows in units as wide as their size and address allow.
template <typename Unit, typename Index>
__global__ void GatherKernel(GatherLayout l, Divider by_inner, Divider by_count,
                             const Unit* data, const Index* indices, Unit* y,
                             DataErrorSink errors) {
  const int64_t n = l.data.outer * l.count * l.data.inner;
  for (int64_t e = GridThread(); e < n; e += GridThreads()) {
    const int64_t unit = by_inner.Divide(e);
    const int64_t j = e - unit * l.data.inner;
    const int64_t outer = by_count.Divide(unit);
    const int64_t i = unit - outer * l.count;
    const int64_t row = GatherRow(indices[i], l.data.size);
    if (row < 0 || row >= l.data.size) {
      ReportDataError(errors, i);
      y[e] = Unit{};
    } else {
      y[e] = data[(outer * l.data.size + row) * l.data.inner + j];
    }
  }
}

template <typename Unit, typename Index>
PreparedKernel MakeGather(GatherLayout l, int64_t row_bytes,
                          DescribeFunction describe) {
  l.data.inner = row_bytes / int64_t{sizeof(Unit)};
  const int64_t n = l.data.outer * l.count * l.data.inner;
  return MakeKernel(
      [=](const KernelArgs& args, const LaunchContext& launch) {
        if (n == 0) return absl::OkStatus();
        return LaunchKernel(
            GatherKernel<Unit, Index>, GridFor(n), kBlock, 0, launch.stream, l,
            Divider(l.data.inner), Divider(l.count), In<Unit>(args, 0),
            In<Index>(args, 1), Out<Unit>(args, 0), launch.sink());
      },
      0, std::move(describe));
}

PreparedKernel Gather(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireType(p, p.input(0).dtype, {}, {0}));
  const GatherLayout l = MakeGatherLayout(p, p.input(0));
  const int64_t bytes = l.data.inner * models::DTypeBytes(p.input(0).dtype);
  return WithIndex(p, p.input(1).dtype, [&](auto type) -> PreparedKernel {
    using Index = decltype(type);
    if (bytes % 16 == 0) {
      return MakeGather<Pack<uint32_t, 4>, Index>(l, bytes,
                                                  DescribeIndex(p, l));
    }
    return WithBits(p.input(0).dtype, [&](auto bits) {
      return MakeGather<decltype(bits), Index>(l, bytes, DescribeIndex(p, l));
    });
  });
}

// Bytes of the row table, which precedes the sort's lists in the workspace.
int64_t BeginsBytes(const GatherLayout& l) {
  return planner::AlignUp((l.data.size + 1) * int64_t{sizeof(int32_t)});
}

// Keys: the row, or `size` for an index out of range, which then sorts last.
template <typename Index>
__global__ void MakeKeysKernel(GatherLayout l, const Index* indices,
                               Keyed* items, DataErrorSink errors) {
  for (int64_t i = GridThread(); i < l.count; i += GridThreads()) {
    int64_t row = GatherRow(indices[i], l.data.size);
    if (row < 0 || row >= l.data.size) {
      ReportDataError(errors, i);
      row = l.data.size;
    }
    items[i] = {static_cast<uint32_t>(row), static_cast<uint32_t>(i)};
  }
}

// Index of the first sorted item whose key is at least `key`.
__device__ int64_t LowerBound(const Keyed* items, int64_t count, int64_t key) {
  int64_t begin = 0;
  int64_t end = count;
  while (begin < end) {
    const int64_t middle = (begin + end) / 2;
    if (items[middle].key < key) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

// begins[row]: index of the row's first sorted item; one more entry at the end.
__global__ void FindRowsKernel(GatherLayout l, const Keyed* items,
                               int32_t* begins) {
  for (int64_t row = GridThread(); row <= l.data.size; row += GridThreads()) {
    begins[row] = static_cast<int32_t>(LowerBound(items, l.count, row));
  }
}

// A pack of dx[outer, row, j...]: the sum of dy[outer, position, j...] over the
// row's positions.
template <int kWidth, typename T>
__global__ void AddRowsKernel(GatherLayout l, Divider by_packs, Divider by_size,
                              const Keyed* items, const int32_t* begins,
                              const T* dy, T* dx) {
  const int64_t packs = l.data.inner / kWidth;
  const int64_t n = l.data.outer * l.data.size * packs;
  for (int64_t e = GridThread(); e < n; e += GridThreads()) {
    const int64_t line = by_packs.Divide(e);
    const int64_t j = (e - line * packs) * kWidth;
    const int64_t outer = by_size.Divide(line);
    const int64_t row = line - outer * l.data.size;
    const T* from = dy + outer * l.count * l.data.inner + j;
    const int32_t end = begins[row + 1];
    float sums[kWidth] = {};
    for (int32_t i = begins[row]; i < end; ++i) {
      const Pack<T, kWidth> pack =
          LoadPack<kWidth>(from + items[i].position * l.data.inner);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) sums[k] += Widen(pack.at[k]);
    }
    Pack<T, kWidth> to;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) to.at[k] = Narrow<T>(sums[k]);
    StorePack(dx + e * kWidth, to);
  }
}

template <int kWidth, typename T>
absl::Status LaunchAddRows(const GatherLayout& l, const Keyed* items,
                           const int32_t* begins, const KernelArgs& args,
                           cudaStream_t stream) {
  const int64_t packs = l.data.inner / kWidth;
  return LaunchKernel(AddRowsKernel<kWidth, T>,
                      GridFor(l.data.outer * l.data.size * packs), kBlock, 0,
                      stream, l, Divider(packs), Divider(l.data.size), items,
                      begins, In<T>(args, 0), Out<T>(args, 0));
}

// Sorts the positions by row. `begins` gets each row's first sorted item.
template <typename Index>
absl::Status SortByRow(const GatherLayout& l, const StableSort& sort,
                       const KernelArgs& args, const LaunchContext& launch) {
  std::byte* lists = args.workspace + BeginsBytes(l);
  if (l.count > 0) {
    LOADLINE_RETURN_IF_ERROR(LaunchKernel(
        MakeKeysKernel<Index>, GridFor(l.count), kBlock, 0, launch.stream, l,
        In<Index>(args, 1), sort.Unsorted(lists), launch.sink()));
    LOADLINE_RETURN_IF_ERROR(sort.Enqueue(lists, launch.stream));
  }
  return LaunchKernel(FindRowsKernel, GridFor(l.data.size + 1), kBlock, 0,
                      launch.stream, l, sort.Sorted(lists),
                      Workspace<int32_t>(args));
}

// y[row, j]: of the row's last update, or of data where it has none.
template <typename Bits>
__global__ void ScatterKernel(GatherLayout l, Divider by_inner,
                              const Keyed* items, const int32_t* begins,
                              const Bits* data, const Bits* updates, Bits* y) {
  const int64_t n = l.data.size * l.data.inner;
  for (int64_t e = GridThread(); e < n; e += GridThreads()) {
    const int64_t row = by_inner.Divide(e);
    const int32_t end = begins[row + 1];
    y[e] = begins[row] == end ? data[e]
                              : updates[items[end - 1].position * l.data.inner +
                                        e - row * l.data.inner];
  }
}

struct ProductOf {
  __device__ float operator()(float a, float b) const { return a * b; }
};

// y[row, j]: data's element combined with those of the row's updates.
template <typename Combine>
__global__ void CombineRowsKernel(GatherLayout l, Divider by_inner,
                                  const Keyed* items, const int32_t* begins,
                                  const float* data, const float* updates,
                                  float* y) {
  const int64_t n = l.data.size * l.data.inner;
  for (int64_t e = GridThread(); e < n; e += GridThreads()) {
    const int64_t row = by_inner.Divide(e);
    const float* from = updates + (e - row * l.data.inner);
    const int32_t end = begins[row + 1];
    float result = data[e];
    for (int32_t i = begins[row]; i < end; ++i) {
      result = Combine()(result, from[items[i].position * l.data.inner]);
    }
    y[e] = result;
  }
}

template <typename T, typename Index>
absl::Status LaunchGrad(const GatherLayout& l, const StableSort& sort,
                        const KernelArgs& args, const LaunchContext& launch) {
  if (l.data.outer * l.data.size * l.data.inner == 0) return absl::OkStatus();
  LOADLINE_RETURN_IF_ERROR(SortByRow<Index>(l, sort, args, launch));
  const auto* begins = Workspace<int32_t>(args);
  const Keyed* items = sort.Sorted(args.workspace + BeginsBytes(l));
  if (l.data.inner % kPackWidth<T> == 0) {
    return LaunchAddRows<kPackWidth<T>, T>(l, items, begins, args,
                                           launch.stream);
  }
  return LaunchAddRows<1, T>(l, items, begins, args, launch.stream);
}

absl::Status CheckSortable(const Prepare& p, const GatherLayout& l) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (l.count < kMost && l.data.size < kMost) return absl::OkStatus();
  return p.Invalid("2^31 indices or rows, or more");
}

PreparedKernel GatherGrad(const Prepare& p) {
  const GatherLayout l = MakeGatherLayout(p, p.output(0));
  LOADLINE_RETURN_IF_ERROR(CheckSortable(p, l));
  LOADLINE_RETURN_IF_ERROR(RequireType(p, p.input(0).dtype, {}, {0}));
  const StableSort sort(l.count, l.data.size + 1);
  return WithFloat(p, p.output(0).dtype, [&](auto type) {
    using T = decltype(type);
    return WithIndex(p, p.input(1).dtype, [&](auto index) -> PreparedKernel {
      using Index = decltype(index);
      return MakeKernel(
          [l, sort](const KernelArgs& args, const LaunchContext& launch) {
            return LaunchGrad<T, Index>(l, sort, args, launch);
          },
          BeginsBytes(l) + sort.workspace_bytes(), DescribeIndex(p, l));
    });
  });
}

// A thread for each element of y, which finds the updates of its row.
template <typename T, typename Index, typename Kernel>
absl::Status LaunchUpdates(Kernel kernel, const GatherLayout& l,
                           const StableSort& sort, const KernelArgs& args,
                           const LaunchContext& launch) {
  if (l.data.size * l.data.inner == 0) return absl::OkStatus();
  LOADLINE_RETURN_IF_ERROR(SortByRow<Index>(l, sort, args, launch));
  return LaunchKernel(kernel, GridFor(l.data.size * l.data.inner), kBlock, 0,
                      launch.stream, l, Divider(l.data.inner),
                      sort.Sorted(args.workspace + BeginsBytes(l)),
                      Workspace<int32_t>(args), In<T>(args, 0), In<T>(args, 2),
                      Out<T>(args, 0));
}

PreparedKernel Scatter(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireType(p, p.input(0).dtype, {2}, {0}));
  const GatherLayout l = MakeGatherLayout(p, p.input(0));
  LOADLINE_RETURN_IF_ERROR(CheckSortable(p, l));
  const StableSort sort(l.count, l.data.size + 1);
  return WithBits(p.output(0).dtype, [&](auto bits) {
    using Bits = decltype(bits);
    return WithIndex(p, p.input(1).dtype, [&](auto index) -> PreparedKernel {
      using Index = decltype(index);
      return MakeKernel(
          [l, sort](const KernelArgs& args, const LaunchContext& launch) {
            return LaunchUpdates<Bits, Index>(ScatterKernel<Bits>, l, sort,
                                              args, launch);
          },
          BeginsBytes(l) + sort.workspace_bytes(), DescribeIndex(p, l));
    });
  });
}

template <typename Combine>
PreparedKernel MakeScatterReduce(const Prepare& p) {
  const GatherLayout l = MakeGatherLayout(p, p.input(0));
  LOADLINE_RETURN_IF_ERROR(CheckSortable(p, l));
  const StableSort sort(l.count, l.data.size + 1);
  return WithIndex(p, p.input(1).dtype, [&](auto index) -> PreparedKernel {
    using Index = decltype(index);
    return MakeKernel(
        [l, sort](const KernelArgs& args, const LaunchContext& launch) {
          return LaunchUpdates<float, Index>(CombineRowsKernel<Combine>, l,
                                             sort, args, launch);
        },
        BeginsBytes(l) + sort.workspace_bytes(), DescribeIndex(p, l));
  });
}

PreparedKernel ScatterReduce(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireType(p, DType::kF32, {0, 2}, {0}));
  const std::string reduction = p.node().attributes.String("reduction", "");
  if (reduction == "max") return MakeScatterReduce<MaxOf>(p);
  if (reduction == "min") return MakeScatterReduce<MinOf>(p);
  return MakeScatterReduce<ProductOf>(p);
}

constexpr KernelEntry kKernels[] = {{"Gather", Gather},
                                    {"GatherGrad", GatherGrad},
                                    {"Scatter", Scatter},
                                    {"ScatterReduce", ScatterReduce}};

}  // namespace

absl::Span<const KernelEntry> GatherKernels() { return kKernels; }

}  // namespace loadline::executor::cuda
