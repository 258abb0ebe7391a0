// Loops over dense elements: 16 bytes of the widest type at a time, then the
// rest one by one. Outputs may share memory with inputs: a thread reads its
// elements before it writes them.
#ifndef LOADLINE_EXECUTOR_CUDA_ELEMENTWISE_H_
#define LOADLINE_EXECUTOR_CUDA_ELEMENTWISE_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "executor/cuda/cuda_kernel.h"
#include "executor/cuda/launch.h"
#include "executor/cuda/numbers.h"

namespace loadline::executor::cuda {

// y[i] = f(x[i]).
template <typename F, typename T, typename R>
__global__ void MapKernel(F f, const T* x, R* y, int64_t n) {
  constexpr int kWidth =
      kPackWidth<T> < kPackWidth<R> ? kPackWidth<T> : kPackWidth<R>;
  const int64_t packs = n / kWidth;
  for (int64_t i = GridThread(); i < packs; i += GridThreads()) {
    const Pack<T, kWidth> from = LoadPack<kWidth>(x + i * kWidth);
    Pack<R, kWidth> to;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) to.at[k] = f(from.at[k]);
    StorePack(y + i * kWidth, to);
  }
  const int64_t last = packs * kWidth + GridThread();
  if (last < n) y[last] = f(x[last]);
}

// y[i] = f(a[i], b[i]).
template <typename F, typename T>
__global__ void MapPairKernel(F f, const T* a, const T* b, T* y, int64_t n) {
  constexpr int kWidth = kPackWidth<T>;
  const int64_t packs = n / kWidth;
  for (int64_t i = GridThread(); i < packs; i += GridThreads()) {
    const Pack<T, kWidth> left = LoadPack<kWidth>(a + i * kWidth);
    const Pack<T, kWidth> right = LoadPack<kWidth>(b + i * kWidth);
    Pack<T, kWidth> to;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) to.at[k] = f(left.at[k], right.at[k]);
    StorePack(y + i * kWidth, to);
  }
  const int64_t last = packs * kWidth + GridThread();
  if (last < n) y[last] = f(a[last], b[last]);
}

// Applies a function of floats to elements of type T.
template <typename F, typename T>
struct OnFloats {
  F f;
  __device__ T operator()(T x) const { return Narrow<T>(f(Widen(x))); }
  __device__ T operator()(T a, T b) const {
    return Narrow<T>(f(Widen(a), Widen(b)));
  }
};

// A kernel that does nothing if the tensor is empty.
template <typename F, typename T, typename R>
PreparedKernel MakeMap(int64_t n, F f = {}) {
  return MakeKernel(
      [n, f](const KernelArgs& args, const LaunchContext& launch) {
        if (n == 0) return absl::OkStatus();
        return LaunchKernel(MapKernel<F, T, R>, GridFor(n / kPackWidth<T> + 1),
                            kBlock, 0, launch.stream, f, In<T>(args, 0),
                            Out<R>(args, 0), n);
      });
}

template <typename F, typename T>
PreparedKernel MakeMapPair(int64_t n, F f = {}) {
  return MakeKernel(
      [n, f](const KernelArgs& args, const LaunchContext& launch) {
        if (n == 0) return absl::OkStatus();
        return LaunchKernel(MapPairKernel<F, T>, GridFor(n / kPackWidth<T> + 1),
                            kBlock, 0, launch.stream, f, In<T>(args, 0),
                            In<T>(args, 1), Out<T>(args, 0), n);
      });
}

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_ELEMENTWISE_H_
