// Kernels that copy contiguous runs: Concat, Split, Slice, SliceGrad, Expand,
// WriteRows.
// Tested in tests/conformance/.
#include <cstring>

#include "executor/cpu/families.h"
#include "executor/cpu/parallel.h"
#include "executor/ops/dispatch.h"
#include "executor/ops/loop_nest.h"
#include "executor/ops/operator_shapes.h"

namespace loadline::executor::cpu {
namespace {

// Copies `rows` rows of `bytes` between two strided places, all in bytes.
void CopyRows(const std::byte* from, int64_t from_stride, std::byte* to,
              int64_t to_stride, int64_t rows, int64_t bytes) {
  if (bytes == 0) return;
  ParallelEach(rows, bytes / 4, [=](int64_t row) {
    std::memcpy(to + row * to_stride, from + row * from_stride, bytes);
  });
}

PreparedKernel Concat(const Prepare& p) {
  return MakeKernel([parts = ConcatParts(p)](const KernelArgs& args) {
    std::byte* to = args.outputs[0];
    for (size_t i = 0; i < parts.part_bytes.size(); ++i) {
      const int64_t bytes = parts.part_bytes[i];
      CopyRows(args.inputs[i], bytes, to, parts.whole_bytes, parts.rows, bytes);
      to += bytes;
    }
  });
}

PreparedKernel Split(const Prepare& p) {
  return MakeKernel([parts = SplitParts(p)](const KernelArgs& args) {
    const std::byte* from = args.inputs[0];
    for (size_t i = 0; i < parts.part_bytes.size(); ++i) {
      const int64_t bytes = parts.part_bytes[i];
      CopyRows(from, parts.whole_bytes, args.outputs[i], bytes, parts.rows,
               bytes);
      from += bytes;
    }
  });
}

// y[i * to_stride] = x[i * from_stride], for a nest over (from, to).
template <typename T>
void CopyNest(const LoopNest<2>& nest, const T* x, T* y) {
  const int64_t sx = nest.inner_stride(0);
  const int64_t sy = nest.inner_stride(1);
  ParallelFor(nest.elements(), kElementBlock, [&](int64_t begin, int64_t end) {
    nest.Run(begin, end, [&](const std::array<int64_t, 2>& at, int64_t n) {
      const T* from = x + at[0];
      T* to = y + at[1];
      if (sx == 1 && sy == 1) {
        std::memcpy(to, from, n * sizeof(T));
      } else if (sx == 0 && sy == 1) {
        std::fill(to, to + n, *from);
      } else {
        for (int64_t i = 0; i < n; ++i) to[i * sy] = from[i * sx];
      }
    });
  });
}

PreparedKernel Slice(const Prepare& p) {
  const SliceWindow window = MakeSliceWindow(p, p.input(0).dims);
  const Ints& dims = p.output(0).dims;
  const LoopNest<2> nest(dims, {window.strides, DenseStrides(dims)});
  return WithBits(p.output(0).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    return MakeKernel([nest, first = window.first](const KernelArgs& args) {
      if (nest.elements() == 0) return;
      CopyNest(nest, In<T>(args, 0) + first, Out<T>(args, 0));
    });
  });
}

PreparedKernel SliceGrad(const Prepare& p) {
  const SliceWindow window = MakeSliceWindow(p, p.output(0).dims);
  const Ints& dims = p.input(0).dims;
  const LoopNest<2> nest(dims, {DenseStrides(dims), window.strides});
  const int64_t bytes = p.output(0).bytes();
  return WithBits(p.output(0).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    return MakeKernel(
        [nest, bytes, first = window.first](const KernelArgs& args) {
          // The pointer may be null if there is nothing to write; memset
          // requires non-null.
          if (bytes > 0) std::memset(args.outputs[0], 0, bytes);
          if (nest.elements() == 0) return;
          CopyNest(nest, In<T>(args, 0), Out<T>(args, 0) + first);
        });
  });
}

PreparedKernel Expand(const Prepare& p) {
  const Ints& dims = p.output(0).dims;
  const LoopNest<2> nest(
      dims, {BroadcastStrides(p.input(0).dims, dims), DenseStrides(dims)});
  return WithBits(p.output(0).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    return MakeKernel([nest](const KernelArgs& args) {
      CopyNest(nest, In<T>(args, 0), Out<T>(args, 0));
    });
  });
}

// What is not written keeps its contents; without any, it is 0.
PreparedKernel WriteRows(const Prepare& p) {
  const int64_t part = p.input(0).bytes();
  const int64_t whole = p.output(0).bytes();
  const int64_t start =
      p.attributes().Int("start", 0) * models::DTypeBytes(p.output(0).dtype);
  const bool has_rest = p.has_input(1);
  return MakeKernel([=](const KernelArgs& args) {
    std::byte* to = args.outputs[0];
    if (!has_rest) {
      if (start > 0) std::memset(to, 0, start);
      const int64_t after = whole - start - part;
      if (after > 0) std::memset(to + start + part, 0, after);
    } else if (args.inputs[1] != to) {
      CopyBytes(args.inputs[1], to, whole);
    }
    if (part > 0) CopyBytes(args.inputs[0], to + start, part);
  });
}

constexpr KernelEntry kShapeKernels[] = {
    {"Concat", Concat},       {"Split", Split},   {"Slice", Slice},
    {"SliceGrad", SliceGrad}, {"Expand", Expand}, {"WriteRows", WriteRows},
};

}  // namespace

absl::Span<const KernelEntry> ShapeKernels() { return kShapeKernels; }

}  // namespace loadline::executor::cpu
