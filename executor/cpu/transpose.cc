// Transpose: copies contiguous runs if the innermost dimension stays innermost,
// otherwise tiles of 16 x 16, so that both sides access whole cache lines.
// Tested in tests/conformance/.
#include <cstring>

#include "executor/cpu/families.h"
#include "executor/cpu/parallel.h"
#include "executor/ops/dispatch.h"
#include "executor/ops/loop_nest.h"
#include "executor/ops/operator_shapes.h"

namespace loadline::executor::cpu {
namespace {

constexpr int64_t kTile = 16;

template <typename T>
PreparedKernel CopyStretches(const LoopNest<2>& nest) {
  return MakeKernel([nest](const KernelArgs& args) {
    const T* x = In<T>(args, 0);
    T* y = Out<T>(args, 0);
    ParallelFor(nest.elements(), kElementBlock,
                [&](int64_t begin, int64_t end) {
                  nest.Run(begin, end,
                           [&](const std::array<int64_t, 2>& at, int64_t n) {
                             std::memcpy(y + at[1], x + at[0], n * sizeof(T));
                           });
                });
  });
}

template <typename T>
void TransposeRows(const TransposeTiles& t, const T* x, T* y, int64_t row,
                   int64_t rows) {
  for (int64_t column = 0; column < t.columns; column += kTile) {
    const int64_t columns = std::min(kTile, t.columns - column);
    const T* from = x + row + column * t.in_stride;
    T* to = y + row * t.out_stride + column;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        to[i * t.out_stride + j] = from[j * t.in_stride + i];
      }
    }
  }
}

template <typename T>
PreparedKernel MakeTiles(const TransposeTiles& t) {
  return MakeKernel([t](const KernelArgs& args) {
    const T* x = In<T>(args, 0);
    T* y = Out<T>(args, 0);
    const int64_t bands = (t.rows + kTile - 1) / kTile;
    ParallelEach(t.outer.elements() * bands, kTile * t.columns,
                 [&](int64_t unit) {
                   const int64_t outer = unit / bands;
                   const int64_t row = unit % bands * kTile;
                   t.outer.Run(outer, outer + 1,
                               [&](const std::array<int64_t, 2>& at, int64_t) {
                                 TransposeRows(t, x + at[0], y + at[1], row,
                                               std::min(kTile, t.rows - row));
                               });
                 });
  });
}

PreparedKernel Transpose(const Prepare& p) {
  const LoopNest<2> nest = TransposeNest(p);
  return WithBits(p.output(0).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    // A stride of 0 means a single element; empty tensors need no tiles either.
    if (nest.inner_stride(0) <= 1 || nest.elements() == 0) {
      return CopyStretches<T>(nest);
    }
    return MakeTiles<T>(MakeTransposeTiles(nest));
  });
}

constexpr KernelEntry kTransposeKernels[] = {{"Transpose", Transpose}};

}  // namespace

absl::Span<const KernelEntry> TransposeKernels() { return kTransposeKernels; }

}  // namespace loadline::executor::cpu
