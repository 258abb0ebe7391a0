// Softmax, LogSoftmax and their gradients along any axis; f32 and bf16,
// computed in float. A contiguous line is computed by a warp or a block; other
// lines by one thread each, adjacent threads on adjacent lines. A line is read
// completely before it is written, or every thread writes only what it alone
// reads, so all of them work in place. Tested in tests/conformance/.
#include "executor/cuda/families.h"
#include "executor/cuda/launch.h"
#include "executor/cuda/line_statistics.h"
#include "executor/cuda/math.h"
#include "executor/cuda/numbers.h"
#include "executor/cuda/team.h"
#include "executor/cuda/types.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cuda {
namespace {

// y from an element, the line's maximum, and the log or the inverse of its sum.
template <bool kLog>
__device__ float SoftmaxOf(float x, float largest, float factor) {
  return kLog ? (x - largest) - factor : Math::Exp(x - largest) * factor;
}
template <bool kLog>
__device__ float SoftmaxFactor(float sum) {
  return kLog ? Math::Log(sum) : 1.0f / sum;
}

template <int kTeam, int kWidth, bool kLog, typename T>
__global__ void SoftmaxRowsKernel(int64_t rows, int64_t size, const T* x,
                                  T* y) {
  for (int64_t row = TeamIndex<kTeam>(); row < rows;
       row += TeamsOfGrid<kTeam>()) {
    const T* from = x + row * size;
    const ExpSum line = RowExpSum<kTeam, kWidth>(from, size);
    const float factor = SoftmaxFactor<kLog>(line.sum);
    ForRowPacks<kTeam, kWidth>(size, [&](int64_t j) {
      Pack<T, kWidth> pack = LoadPack<kWidth>(from + j);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        pack.at[k] =
            Narrow<T>(SoftmaxOf<kLog>(Widen(pack.at[k]), line.largest, factor));
      }
      StorePack(y + row * size + j, pack);
    });
  }
}

template <bool kLog, typename T>
__global__ void SoftmaxLinesKernel(AxisSplit s, const T* x, T* y) {
  for (int64_t line = GridThread(); line < s.outer * s.inner;
       line += GridThreads()) {
    const int64_t at = FirstOfLine(s, line);
    const ExpSum sum = LineExpSum(s, x + at);
    const float factor = SoftmaxFactor<kLog>(sum.sum);
    for (int64_t k = 0; k < s.size; ++k) {
      const int64_t i = at + k * s.inner;
      y[i] = Narrow<T>(SoftmaxOf<kLog>(Widen(x[i]), sum.largest, factor));
    }
  }
}

// dx of an element, and its term in the line's sum.
template <bool kLog>
__device__ float GradTerm(float dy, float y) {
  return kLog ? dy : dy * y;
}
template <bool kLog>
__device__ float GradOf(float dy, float y, float sum) {
  return kLog ? dy - Math::Exp(y) * sum : y * (dy - sum);
}

template <int kTeam, int kWidth, bool kLog, typename T>
__global__ void SoftmaxGradRowsKernel(int64_t rows, int64_t size, const T* dy,
                                      const T* y, T* dx) {
  for (int64_t row = TeamIndex<kTeam>(); row < rows;
       row += TeamsOfGrid<kTeam>()) {
    const int64_t at = row * size;
    float sum = 0;
    ForRowPacks<kTeam, kWidth>(size, [&](int64_t j) {
      const Pack<T, kWidth> d = LoadPack<kWidth>(dy + at + j);
      const Pack<T, kWidth> of_y = LoadPack<kWidth>(y + at + j);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        sum += GradTerm<kLog>(Widen(d.at[k]), Widen(of_y.at[k]));
      }
    });
    sum = TeamSum<kTeam>(sum);
    ForRowPacks<kTeam, kWidth>(size, [&](int64_t j) {
      Pack<T, kWidth> d = LoadPack<kWidth>(dy + at + j);
      const Pack<T, kWidth> of_y = LoadPack<kWidth>(y + at + j);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        d.at[k] =
            Narrow<T>(GradOf<kLog>(Widen(d.at[k]), Widen(of_y.at[k]), sum));
      }
      StorePack(dx + at + j, d);
    });
  }
}

template <bool kLog, typename T>
__global__ void SoftmaxGradLinesKernel(AxisSplit s, const T* dy, const T* y,
                                       T* dx) {
  for (int64_t line = GridThread(); line < s.outer * s.inner;
       line += GridThreads()) {
    const int64_t at = FirstOfLine(s, line);
    float sum = 0;
    for (int64_t k = 0; k < s.size; ++k) {
      const int64_t i = at + k * s.inner;
      sum += GradTerm<kLog>(Widen(dy[i]), Widen(y[i]));
    }
    for (int64_t k = 0; k < s.size; ++k) {
      const int64_t i = at + k * s.inner;
      dx[i] = Narrow<T>(GradOf<kLog>(Widen(dy[i]), Widen(y[i]), sum));
    }
  }
}

// The kernel for this row size: per warp or per block, with packs or without.
template <bool kLog, typename T>
auto RowsKernelFor(int64_t size) {
  constexpr int kWidth = kPackWidth<T>;
  if (size % kWidth == 0) {
    return size > kLongRow ? SoftmaxRowsKernel<kBlock, kWidth, kLog, T>
                           : SoftmaxRowsKernel<kWarp, kWidth, kLog, T>;
  }
  return size > kLongRow ? SoftmaxRowsKernel<kBlock, 1, kLog, T>
                         : SoftmaxRowsKernel<kWarp, 1, kLog, T>;
}
template <bool kLog, typename T>
auto GradRowsKernelFor(int64_t size) {
  constexpr int kWidth = kPackWidth<T>;
  if (size % kWidth == 0) {
    return size > kLongRow ? SoftmaxGradRowsKernel<kBlock, kWidth, kLog, T>
                           : SoftmaxGradRowsKernel<kWarp, kWidth, kLog, T>;
  }
  return size > kLongRow ? SoftmaxGradRowsKernel<kBlock, 1, kLog, T>
                         : SoftmaxGradRowsKernel<kWarp, 1, kLog, T>;
}

template <bool kLog, typename T>
absl::Status LaunchSoftmax(const AxisSplit& s, const KernelArgs& args,
                           cudaStream_t stream) {
  const T* x = In<T>(args, 0);
  T* y = Out<T>(args, 0);
  if (s.inner != 1) {
    return LaunchKernel(SoftmaxLinesKernel<kLog, T>, GridFor(s.outer * s.inner),
                        kBlock, 0, stream, s, x, y);
  }
  return LaunchKernel(RowsKernelFor<kLog, T>(s.size),
                      GridForRows(s.outer, s.size), kBlock, 0, stream, s.outer,
                      s.size, x, y);
}

template <bool kLog, typename T>
absl::Status LaunchSoftmaxGrad(const AxisSplit& s, const KernelArgs& args,
                               cudaStream_t stream) {
  const T* dy = In<T>(args, 0);
  const T* y = In<T>(args, 1);
  T* dx = Out<T>(args, 0);
  if (s.inner != 1) {
    return LaunchKernel(SoftmaxGradLinesKernel<kLog, T>,
                        GridFor(s.outer * s.inner), kBlock, 0, stream, s, dy, y,
                        dx);
  }
  return LaunchKernel(GradRowsKernelFor<kLog, T>(s.size),
                      GridForRows(s.outer, s.size), kBlock, 0, stream, s.outer,
                      s.size, dy, y, dx);
}

template <bool kLog, bool kGrad>
PreparedKernel PrepareSoftmax(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireOneType(p));
  const AxisSplit s = SplitAt(p.input(0).dims, p.attributes().Int("axis", -1));
  return WithFloat(p, p.output(0).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    return MakeKernel([s](const KernelArgs& args, const LaunchContext& launch) {
      if (s.outer * s.size * s.inner == 0) return absl::OkStatus();
      return (kGrad ? LaunchSoftmaxGrad<kLog, T>
                    : LaunchSoftmax<kLog, T>)(s, args, launch.stream);
    });
  });
}

constexpr KernelEntry kKernels[] = {
    {"Softmax", PrepareSoftmax<false, false>},
    {"LogSoftmax", PrepareSoftmax<true, false>},
    {"SoftmaxGrad", PrepareSoftmax<false, true>},
    {"LogSoftmaxGrad", PrepareSoftmax<true, true>},
};

}  // namespace

absl::Span<const KernelEntry> SoftmaxKernels() { return kKernels; }

}  // namespace loadline::executor::cuda
