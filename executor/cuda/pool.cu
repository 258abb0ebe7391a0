// Max and average pooling, 1-d and 2-d; f32 and bf16. A thread computes one
// output, or in the gradients one element of dx from the windows that cover it
// in order, so nothing is added atomically. Tested in tests/conformance/.
#include <cmath>

#include "executor/cuda/families.h"
#include "executor/cuda/launch.h"
#include "executor/cuda/nest.h"
#include "executor/cuda/numbers.h"
#include "executor/cuda/types.h"
#include "executor/ops/pool_window.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cuda {
namespace {

// A pool with precomputed divisions: maps positions to (plane, row, column).
struct Planes {
  Pool pool;
  Divider in_width, in_plane, out_width, out_plane;
};
Planes MakePlanes(const Pool& pool) {
  return {pool, Divider(pool.w.in), Divider(pool.in_plane()),
          Divider(pool.w.out), Divider(pool.out_plane())};
}

struct Place {
  int64_t plane;
  int32_t row, column;
};
__device__ Place PlaceOf(int64_t i, const Divider& by_plane, int64_t plane,
                         const Divider& by_width, int64_t width) {
  const int64_t p = by_plane.Divide(i);
  const int64_t rest = i - p * plane;
  const int64_t row = by_width.Divide(rest);
  return {p, static_cast<int32_t>(row),
          static_cast<int32_t>(rest - row * width)};
}
__device__ Place OutPlace(const Planes& p, int64_t i) {
  return PlaceOf(i, p.out_plane, p.pool.out_plane(), p.out_width, p.pool.w.out);
}
__device__ Place InPlace(const Planes& p, int64_t i) {
  return PlaceOf(i, p.in_plane, p.pool.in_plane(), p.in_width, p.pool.w.in);
}

// Calls body(position in the output plane) for the windows that cover an
// element, in order.
template <typename Body>
__device__ void ForCoveringWindows(const Pool& pool, const Place& at,
                                   const Body& body) {
  const PoolAxis& h = pool.h;
  const PoolAxis& w = pool.w;
  for (int32_t oh = h.FirstCovering(at.row); oh < h.EndCovering(at.row); ++oh) {
    if (!h.Covers(oh, at.row)) continue;
    for (int32_t ow = w.FirstCovering(at.column); ow < w.EndCovering(at.column);
         ++ow) {
      if (w.Covers(ow, at.column)) body(oh, ow);
    }
  }
}

// The first of equal maxima wins; NaN wins over everything.
template <typename T>
__global__ void MaxPoolKernel(Planes p, int64_t n, const T* x, T* y,
                              int32_t* argmax) {
  for (int64_t i = GridThread(); i < n; i += GridThreads()) {
    const Place at = OutPlace(p, i);
    const T* plane = x + at.plane * p.pool.in_plane();
    float best = -INFINITY;
    int32_t where = -1;
    ForPositions(p.pool, at.row, at.column, [&](int32_t k) {
      const float value = Widen(plane[k]);
      if (where < 0 || value > best || value != value) {
        best = value;
        where = k;
      }
    });
    y[i] = Narrow<T>(best);
    argmax[i] = where;
  }
}

template <typename T>
__global__ void MaxPoolGradKernel(Planes p, int64_t n, const T* dy,
                                  const int32_t* argmax, T* dx) {
  for (int64_t i = GridThread(); i < n; i += GridThreads()) {
    const Place at = InPlace(p, i);
    const int32_t mine = at.row * p.pool.w.in + at.column;
    const int64_t base = at.plane * p.pool.out_plane();
    float sum = 0;
    ForCoveringWindows(p.pool, at, [&](int32_t oh, int32_t ow) {
      const int64_t o = base + int64_t{oh} * p.pool.w.out + ow;
      if (argmax[o] == mine) sum += Widen(dy[o]);
    });
    dx[i] = Narrow<T>(sum);
  }
}

template <typename T>
__global__ void AveragePoolKernel(Planes p, int64_t n, const T* x, T* y) {
  for (int64_t i = GridThread(); i < n; i += GridThreads()) {
    const Place at = OutPlace(p, i);
    const T* plane = x + at.plane * p.pool.in_plane();
    float sum = 0;
    ForPositions(p.pool, at.row, at.column,
                 [&](int32_t k) { sum += Widen(plane[k]); });
    y[i] =
        Narrow<T>(sum / static_cast<float>(Divisor(p.pool, at.row, at.column)));
  }
}

template <typename T>
__global__ void AveragePoolGradKernel(Planes p, int64_t n, const T* dy, T* dx) {
  for (int64_t i = GridThread(); i < n; i += GridThreads()) {
    const Place at = InPlace(p, i);
    const T* plane = dy + at.plane * p.pool.out_plane();
    float sum = 0;
    ForCoveringWindows(p.pool, at, [&](int32_t oh, int32_t ow) {
      sum += Widen(plane[int64_t{oh} * p.pool.w.out + ow]) /
             static_cast<float>(Divisor(p.pool, oh, ow));
    });
    dx[i] = Narrow<T>(sum);
  }
}

// A kernel over the elements of the output; `image` and `pooled` are the types
// on either side of the pool. `launch` gets a value of the float type, the
// planes and the number of elements.
template <typename Launch>
PreparedKernel MakePoolKernel(const Prepare& p, const TensorType& image,
                              const TensorType& pooled, const Launch& launch) {
  LOADLINE_RETURN_IF_ERROR(RequireType(p, p.input(0).dtype, {}, {0}));
  LOADLINE_ASSIGN_OR_RETURN(const Pool pool, MakePool(p, image, pooled));
  const int64_t n = p.output(0).elements();
  return WithFloat(p, p.input(0).dtype, [&](auto type) -> PreparedKernel {
    return MakeKernel(
        [=, planes = MakePlanes(pool)](const KernelArgs& args,
                                       const LaunchContext& context) {
          if (n == 0) return absl::OkStatus();
          return launch(type, planes, n, args, context.stream);
        });
  });
}

PreparedKernel MaxPool(const Prepare& p) {
  return MakePoolKernel(p, p.input(0), p.output(0),
                        [](auto type, const Planes& planes, int64_t n,
                           const KernelArgs& args, cudaStream_t stream) {
                          using T = decltype(type);
                          return LaunchKernel(MaxPoolKernel<T>, GridFor(n),
                                              kBlock, 0, stream, planes, n,
                                              In<T>(args, 0), Out<T>(args, 0),
                                              Out<int32_t>(args, 1));
                        });
}

PreparedKernel MaxPoolGrad(const Prepare& p) {
  return MakePoolKernel(p, p.output(0), p.input(0),
                        [](auto type, const Planes& planes, int64_t n,
                           const KernelArgs& args, cudaStream_t stream) {
                          using T = decltype(type);
                          return LaunchKernel(
                              MaxPoolGradKernel<T>, GridFor(n), kBlock, 0,
                              stream, planes, n, In<T>(args, 0),
                              In<int32_t>(args, 1), Out<T>(args, 0));
                        });
}

PreparedKernel AveragePool(const Prepare& p) {
  return MakePoolKernel(p, p.input(0), p.output(0),
                        [](auto type, const Planes& planes, int64_t n,
                           const KernelArgs& args, cudaStream_t stream) {
                          using T = decltype(type);
                          return LaunchKernel(AveragePoolKernel<T>, GridFor(n),
                                              kBlock, 0, stream, planes, n,
                                              In<T>(args, 0), Out<T>(args, 0));
                        });
}

PreparedKernel AveragePoolGrad(const Prepare& p) {
  return MakePoolKernel(
      p, p.output(0), p.input(0),
      [](auto type, const Planes& planes, int64_t n, const KernelArgs& args,
         cudaStream_t stream) {
        using T = decltype(type);
        return LaunchKernel(AveragePoolGradKernel<T>, GridFor(n), kBlock, 0,
                            stream, planes, n, In<T>(args, 0), Out<T>(args, 0));
      });
}

constexpr KernelEntry kKernels[] = {
    {"MaxPool", MaxPool},
    {"MaxPoolGrad", MaxPoolGrad},
    {"AveragePool", AveragePool},
    {"AveragePoolGrad", AveragePoolGrad},
};

}  // namespace

absl::Span<const KernelEntry> PoolKernels() { return kKernels; }

}  // namespace loadline::executor::cuda
