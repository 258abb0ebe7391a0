// Kernels that move elements by stretches: Concat, Split, Slice, SliceGrad,
// Expand. Tested in tests/conformance/.
#include <cstring>

#include "executor/cpu/families.h"
#include "executor/cpu/parallel.h"
#include "executor/dispatch.h"
#include "executor/loop_nest.h"

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

// Concat and Split: for each part, the bytes of one row of it; a row of the
// whole is one row of every part after the other.
struct Parts {
  int64_t rows = 0;
  int64_t whole_bytes = 0;
  Ints part_bytes;
};

Parts MakeParts(const Prepare& p, const TensorType& whole,
                const std::vector<const TensorType*>& parts) {
  Parts made;
  const AxisSplit split = SplitAt(whole.dims, p.attributes().Int("axis", 0));
  const int64_t cell = split.inner * models::DTypeBytes(whole.dtype);
  made.rows = split.outer;
  made.whole_bytes = split.size * cell;
  for (const TensorType* part : parts) {
    made.part_bytes.push_back(
        SplitAt(part->dims, p.attributes().Int("axis", 0)).size * cell);
  }
  return made;
}

PreparedKernel Concat(const Prepare& p) {
  std::vector<const TensorType*> types;
  types.reserve(static_cast<size_t>(p.inputs()));
  for (int i = 0; i < p.inputs(); ++i) types.push_back(&p.input(i));
  const Parts parts = MakeParts(p, p.output(0), types);
  return MakeKernel([parts](const KernelArgs& args) {
    std::byte* to = args.outputs[0];
    for (size_t i = 0; i < parts.part_bytes.size(); ++i) {
      const int64_t bytes = parts.part_bytes[i];
      CopyRows(args.inputs[i], bytes, to, parts.whole_bytes, parts.rows, bytes);
      to += bytes;
    }
  });
}

PreparedKernel Split(const Prepare& p) {
  std::vector<const TensorType*> types;
  types.reserve(static_cast<size_t>(p.outputs()));
  for (int i = 0; i < p.outputs(); ++i) types.push_back(&p.output(i));
  const Parts parts = MakeParts(p, p.input(0), types);
  return MakeKernel([parts](const KernelArgs& args) {
    const std::byte* from = args.inputs[0];
    for (size_t i = 0; i < parts.part_bytes.size(); ++i) {
      const int64_t bytes = parts.part_bytes[i];
      CopyRows(from, parts.whole_bytes, args.outputs[i], bytes, parts.rows,
               bytes);
      from += bytes;
    }
  });
}

// y[i * to_stride] = x[i * from_stride], by a nest over (from, to).
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

// Where a slice lies in the larger tensor.
struct Window {
  int64_t first = 0;  // element offset
  Ints strides;
};

Window MakeWindow(const Prepare& p, const Ints& whole) {
  Window window;
  const Ints dense = DenseStrides(whole);
  window.strides = dense;
  const Ints starts = p.attributes().IntList("starts");
  Ints all;
  for (size_t i = 0; i < starts.size(); ++i) all.push_back(i);
  const Ints axes = p.attributes().IntList("axes", all);
  const Ints steps = p.attributes().IntList("steps", Ints(starts.size(), 1));
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t axis = PositiveAxis(axes[i], whole.size());
    window.first += starts[i] * dense[axis];
    window.strides[axis] = dense[axis] * steps[i];
  }
  return window;
}

PreparedKernel Slice(const Prepare& p) {
  const Window window = MakeWindow(p, p.input(0).dims);
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
  const Window window = MakeWindow(p, p.output(0).dims);
  const Ints& dims = p.input(0).dims;
  const LoopNest<2> nest(dims, {DenseStrides(dims), window.strides});
  const int64_t bytes = p.output(0).bytes();
  return WithBits(p.output(0).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    return MakeKernel(
        [nest, bytes, first = window.first](const KernelArgs& args) {
          // With nothing to write the pointer may be null, which memset
          // refuses.
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

constexpr KernelEntry kKernels[] = {
    {"Concat", Concat},       {"Split", Split},   {"Slice", Slice},
    {"SliceGrad", SliceGrad}, {"Expand", Expand},
};

}  // namespace

absl::Span<const KernelEntry> ShapeKernels() { return kKernels; }

}  // namespace loadline::executor::cpu
