// Transpose. If the innermost dimension stays innermost, rows are copied in
// packs; otherwise tiles of 32 x 32 pass through shared memory, so that both
// sides access contiguous memory. Tested in tests/conformance/.
#include "executor/cuda/families.h"
#include "executor/cuda/launch.h"
#include "executor/cuda/nest.h"
#include "executor/cuda/numbers.h"
#include "executor/cuda/types.h"
#include "executor/ops/operator_shapes.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cuda {
namespace {

constexpr int kTile = 32;
constexpr int kTileRows = 8;  // rows of a tile that a block moves per iteration

// Copies to output position i from the nest's offset.
template <int kWidth, typename T>
__global__ void CopyKernel(Nest<1> nest, const T* x, T* y) {
  const int64_t packs = nest.elements / kWidth;
  for (int64_t i = GridThread(); i < packs; i += GridThreads()) {
    int64_t at[1];
    nest.Offsets(i * kWidth, at);
    StorePack(y + i * kWidth, LoadPack<kWidth>(x + at[0]));
  }
}

// The two dimensions that are exchanged, and the others.
struct Tiled {
  Nest<2> outer;  // offsets in x and y
  // The dimension that is dense in x, and its stride in y.
  int64_t rows, out_stride;
  // The innermost dimension of y, and its stride in x.
  int64_t columns, in_stride;
};

template <typename T>
__global__ void TransposeKernel(Tiled t, Divider bands, Divider stripes,
                                int64_t tiles, const T* x, T* y) {
  // One more column than needed, so that a column of the tile is spread over
  // all memory banks.
  __shared__ T tile[kTile][kTile + 1];
  const int64_t band_count = (t.rows + kTile - 1) / kTile;
  const int64_t stripe_count = (t.columns + kTile - 1) / kTile;
  const int lane = static_cast<int>(threadIdx.x);
  for (int64_t unit = blockIdx.x; unit < tiles; unit += gridDim.x) {
    const int64_t rest = bands.Divide(unit);
    const int64_t row = (unit - rest * band_count) * kTile;
    const int64_t outer = stripes.Divide(rest);
    const int64_t column = (rest - outer * stripe_count) * kTile;
    int64_t at[2];
    t.outer.Offsets(outer, at);
    for (int i = static_cast<int>(threadIdx.y); i < kTile; i += kTileRows) {
      if (row + lane < t.rows && column + i < t.columns) {
        tile[i][lane] = x[at[0] + (column + i) * t.in_stride + row + lane];
      }
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.y); i < kTile; i += kTileRows) {
      if (row + i < t.rows && column + lane < t.columns) {
        y[at[1] + (row + i) * t.out_stride + column + lane] = tile[lane][i];
      }
    }
    __syncthreads();  // before the next tile overwrites it
  }
}

template <int kWidth, typename T>
PreparedKernel MakeCopy(const Nest<1>& nest) {
  return MakeKernel([nest](const KernelArgs& args,
                           const LaunchContext& launch) {
    if (nest.elements == 0) return absl::OkStatus();
    return LaunchKernel(CopyKernel<kWidth, T>, GridFor(nest.elements / kWidth),
                        kBlock, 0, launch.stream, nest, In<T>(args, 0),
                        Out<T>(args, 0));
  });
}

template <typename T>
PreparedKernel MakeTiles(const Tiled& t) {
  const int64_t bands = (t.rows + kTile - 1) / kTile;
  const int64_t stripes = (t.columns + kTile - 1) / kTile;
  const int64_t tiles = t.outer.elements * bands * stripes;
  return MakeKernel([=](const KernelArgs& args, const LaunchContext& launch) {
    return LaunchKernel(TransposeKernel<T>, GridFor(tiles, 1),
                        dim3(kTile, kTileRows), 0, launch.stream, t,
                        Divider(bands), Divider(stripes), tiles, In<T>(args, 0),
                        Out<T>(args, 0));
  });
}

PreparedKernel Transpose(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireOneType(p));
  const LoopNest<2> both = TransposeNest(p);
  return WithBits(p.output(0).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    // A stride of 0 means a single element; empty tensors need no tiles either.
    if (both.inner_stride(0) > 1 && both.elements() > 0) {
      const TransposeTiles t = MakeTransposeTiles(both);
      LOADLINE_ASSIGN_OR_RETURN(const Nest<2> outer, MakeNest(p, t.outer));
      return MakeTiles<T>(
          {outer, t.rows, t.out_stride, t.columns, t.in_stride});
    }
    LOADLINE_ASSIGN_OR_RETURN(
        const Nest<1> nest,
        MakeNest(p, LoopNest<1>(both.dims(), {both.strides(0)})));
    if (nest.inner() % kPackWidth<T> == 0 && nest.inner_stride(0) == 1) {
      return MakeCopy<kPackWidth<T>, T>(nest);
    }
    return MakeCopy<1, T>(nest);
  });
}

constexpr KernelEntry kKernels[] = {{"Transpose", Transpose}};

}  // namespace

absl::Span<const KernelEntry> TransposeKernels() { return kKernels; }

}  // namespace loadline::executor::cuda
