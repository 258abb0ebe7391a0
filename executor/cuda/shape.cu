// Kernels that move elements: Concat, Split, Slice, SliceGrad, Expand,
// WriteRows. Tested in tests/conformance/.
#include "executor/cuda/families.h"
#include "executor/cuda/launch.h"
#include "executor/cuda/nest.h"
#include "executor/cuda/numbers.h"
#include "executor/cuda/types.h"
#include "executor/ops/operator_shapes.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cuda {
namespace {

// `rows` rows of `cells` units, with strides in units.
struct RowCopy {
  int64_t rows, cells, from_stride, to_stride;
  Divider by_cells;
};

template <typename Unit>
__global__ void CopyRowsKernel(RowCopy c, const Unit* from, Unit* to) {
  for (int64_t i = GridThread(); i < c.rows * c.cells; i += GridThreads()) {
    const int64_t row = c.by_cells.Divide(i);
    const int64_t cell = i - row * c.cells;
    to[row * c.to_stride + cell] = from[row * c.from_stride + cell];
  }
}

template <typename Unit>
absl::Status LaunchRows(const std::byte* from, int64_t from_stride,
                        std::byte* to, int64_t to_stride, int64_t rows,
                        int64_t bytes, const LaunchContext& launch) {
  constexpr int64_t kUnit = sizeof(Unit);
  const int64_t cells = bytes / kUnit;
  return LaunchKernel(
      CopyRowsKernel<Unit>, GridFor(rows * cells), kBlock, 0, launch.stream,
      RowCopy{rows, cells, from_stride / kUnit, to_stride / kUnit,
              Divider(cells)},
      reinterpret_cast<const Unit*>(from), reinterpret_cast<Unit*>(to));
}

// Copies `rows` rows of `bytes` between two strided places, all in bytes, at
// `offset` in the wider one. Uses the largest unit that divides everything.
absl::Status CopyRows(const std::byte* from, int64_t from_stride, std::byte* to,
                      int64_t to_stride, int64_t rows, int64_t bytes,
                      const LaunchContext& launch) {
  if (rows * bytes == 0) return absl::OkStatus();
  const auto all = static_cast<uint64_t>(bytes | from_stride | to_stride) |
                   reinterpret_cast<uintptr_t>(from) |
                   reinterpret_cast<uintptr_t>(to);
  auto copy = LaunchRows<uint8_t>;
  if (all % 16 == 0) {
    copy = LaunchRows<Pack<uint32_t, 4>>;
  } else if (all % 4 == 0) {
    copy = LaunchRows<uint32_t>;
  } else if (all % 2 == 0) {
    copy = LaunchRows<uint16_t>;
  }
  return copy(from, from_stride, to, to_stride, rows, bytes, launch);
}

PreparedKernel Concat(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireOneType(p));
  return MakeKernel([parts = ConcatParts(p)](const KernelArgs& args,
                                             const LaunchContext& launch) {
    std::byte* to = args.outputs[0];
    for (size_t i = 0; i < parts.part_bytes.size(); ++i) {
      const int64_t bytes = parts.part_bytes[i];
      LOADLINE_RETURN_IF_ERROR(CopyRows(args.inputs[i], bytes, to,
                                        parts.whole_bytes, parts.rows, bytes,
                                        launch));
      to += bytes;
    }
    return absl::OkStatus();
  });
}

PreparedKernel Split(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireOneType(p));
  return MakeKernel([parts = SplitParts(p)](const KernelArgs& args,
                                            const LaunchContext& launch) {
    const std::byte* from = args.inputs[0];
    for (size_t i = 0; i < parts.part_bytes.size(); ++i) {
      const int64_t bytes = parts.part_bytes[i];
      LOADLINE_RETURN_IF_ERROR(CopyRows(from, parts.whole_bytes,
                                        args.outputs[i], bytes, parts.rows,
                                        bytes, launch));
      from += bytes;
    }
    return absl::OkStatus();
  });
}

// y[offset 1 of the nest] = x[offset 0]; uses packs along the innermost
// dimension if both sides are dense there, or if x repeats.
template <int kWidth, typename T>
__global__ void CopyNestKernel(Nest<2> nest, const T* x, T* y) {
  const int64_t packs = nest.elements / kWidth;
  for (int64_t i = GridThread(); i < packs; i += GridThreads()) {
    int64_t at[2];
    nest.Offsets(i * kWidth, at);
    StorePack(y + at[1], LoadOrRepeat<kWidth>(x + at[0], nest.inner_stride(0)));
  }
}

// Whether the innermost dimension is a multiple of a pack, and so are the first
// element's offset and all other strides.
bool FitsPacks(const Nest<2>& nest, int64_t first, int64_t width) {
  bool fits = nest.inner() % width == 0 && first % width == 0 &&
              nest.inner_stride(0) <= 1 && nest.inner_stride(1) == 1;
  for (int d = 0; d + 1 < nest.rank; ++d) {
    fits = fits && nest.strides[1][d] % width == 0 &&
           (nest.inner_stride(0) == 0 || nest.strides[0][d] % width == 0);
  }
  return fits;
}

template <typename T>
absl::Status CopyNest(const Nest<2>& nest, bool packs, const T* x, T* y,
                      const LaunchContext& launch) {
  if (nest.elements == 0) return absl::OkStatus();
  constexpr int kWidth = kPackWidth<T>;
  return LaunchKernel(packs ? CopyNestKernel<kWidth, T> : CopyNestKernel<1, T>,
                      GridFor(nest.elements / (packs ? kWidth : 1)), kBlock, 0,
                      launch.stream, nest, x, y);
}

PreparedKernel Slice(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireOneType(p));
  const SliceWindow window = MakeSliceWindow(p, p.input(0).dims);
  const Ints& dims = p.output(0).dims;
  LOADLINE_ASSIGN_OR_RETURN(
      const Nest<2> nest,
      MakeNest(p, LoopNest<2>(dims, {window.strides, DenseStrides(dims)})));
  return WithBits(p.output(0).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    const bool packs = FitsPacks(nest, window.first, kPackWidth<T>);
    return MakeKernel([nest, packs, first = window.first](
                          const KernelArgs& args, const LaunchContext& launch) {
      return CopyNest(nest, packs, In<T>(args, 0) + first, Out<T>(args, 0),
                      launch);
    });
  });
}

PreparedKernel SliceGrad(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireOneType(p));
  const SliceWindow window = MakeSliceWindow(p, p.output(0).dims);
  const Ints& dims = p.input(0).dims;
  LOADLINE_ASSIGN_OR_RETURN(
      const Nest<2> nest,
      MakeNest(p, LoopNest<2>(dims, {DenseStrides(dims), window.strides})));
  const int64_t bytes = p.output(0).bytes();
  return WithBits(p.output(0).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    const bool packs = FitsPacks(nest, window.first, kPackWidth<T>);
    return MakeKernel([nest, packs, bytes, first = window.first](
                          const KernelArgs& args, const LaunchContext& launch) {
      if (bytes == 0) return absl::OkStatus();
      LOADLINE_RETURN_IF_ERROR(
          CudaStatus(cudaMemsetAsync(args.outputs[0], 0,
                                     static_cast<size_t>(bytes), launch.stream),
                     "clearing a gradient"));
      return CopyNest(nest, packs, In<T>(args, 0), Out<T>(args, 0) + first,
                      launch);
    });
  });
}

PreparedKernel Expand(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireOneType(p));
  const Ints& dims = p.output(0).dims;
  LOADLINE_ASSIGN_OR_RETURN(
      const Nest<2> nest,
      MakeNest(p, LoopNest<2>(dims, {BroadcastStrides(p.input(0).dims, dims),
                                     DenseStrides(dims)})));
  return WithBits(p.output(0).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    const bool packs = FitsPacks(nest, 0, kPackWidth<T>);
    return MakeKernel(
        [nest, packs](const KernelArgs& args, const LaunchContext& launch) {
          return CopyNest(nest, packs, In<T>(args, 0), Out<T>(args, 0), launch);
        });
  });
}

// What is not written keeps its contents; without any, it is 0.
PreparedKernel WriteRows(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireOneType(p));
  const int64_t part = p.input(0).bytes();
  const int64_t whole = p.output(0).bytes();
  const int64_t start =
      p.attributes().Int("start", 0) * models::DTypeBytes(p.output(0).dtype);
  const bool has_rest = p.has_input(1);
  return MakeKernel([=](const KernelArgs& args, const LaunchContext& launch) {
    std::byte* to = args.outputs[0];
    if (whole == 0) return absl::OkStatus();
    if (!has_rest) {
      LOADLINE_RETURN_IF_ERROR(CudaStatus(
          cudaMemsetAsync(to, 0, static_cast<size_t>(whole), launch.stream),
          "clearing what has no rows yet"));
    } else if (args.inputs[1] != to) {
      LOADLINE_RETURN_IF_ERROR(
          CopyRows(args.inputs[1], whole, to, whole, 1, whole, launch));
    }
    return CopyRows(args.inputs[0], part, to + start, part, 1, part, launch);
  });
}

constexpr KernelEntry kKernels[] = {
    {"Concat", Concat},       {"Split", Split},   {"Slice", Slice},
    {"SliceGrad", SliceGrad}, {"Expand", Expand}, {"WriteRows", WriteRows},
};

}  // namespace

absl::Span<const KernelEntry> ShapeKernels() { return kKernels; }

}  // namespace loadline::executor::cuda
