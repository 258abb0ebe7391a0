// Element types on the device: f32 and bf16, both computed in float, and packs
// of elements that are loaded and stored at once.
#ifndef LOADLINE_EXECUTOR_CUDA_NUMBERS_H_
#define LOADLINE_EXECUTOR_CUDA_NUMBERS_H_

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "executor/ops/dispatch.h"

namespace loadline::executor::cuda {

using BFloat16 = __nv_bfloat16;

// The type in which arithmetic on T is done.
template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, BFloat16>, float, T>;

template <typename T>
__device__ inline Wide<T> Widen(T x) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return __bfloat162float(x);
  } else {
    return x;
  }
}
template <typename T>
__device__ inline T Narrow(Wide<T> x) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return __float2bfloat16(x);
  } else {
    return x;
  }
}

template <typename T, int kWidth>
struct alignas(sizeof(T) * kWidth) Pack {
  T at[kWidth];
};
// Elements of one 16-byte access.
template <typename T>
inline constexpr int kPackWidth = 16 / static_cast<int>(sizeof(T));

template <int kWidth, typename T>
__device__ inline Pack<T, kWidth> LoadPack(const T* from) {
  return *reinterpret_cast<const Pack<T, kWidth>*>(from);
}
template <int kWidth, typename T>
__device__ inline void StorePack(T* to, const Pack<T, kWidth>& pack) {
  *reinterpret_cast<Pack<T, kWidth>*>(to) = pack;
}

// Loads a pack if the stride is 1; repeats one element if it is 0.
template <int kWidth, typename T>
__device__ inline Pack<T, kWidth> LoadOrRepeat(const T* from, int64_t stride) {
  if constexpr (kWidth > 1) {
    if (stride == 0) {
      Pack<T, kWidth> pack;
#pragma unroll
      for (int k = 0; k < kWidth; ++k) pack.at[k] = *from;
      return pack;
    }
  }
  return LoadPack<kWidth>(from);
}

// This thread's index in a loop over all threads of the grid, and their number.
__device__ inline int64_t GridThread() {
  return int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ inline int64_t GridThreads() {
  return int64_t{gridDim.x} * blockDim.x;
}

// Calls body(T{}) with T of f32 or bf16; Unsupported for others.
template <typename Body>
PreparedKernel WithFloat(const executor::Prepare& p, DType dtype,
                         const Body& body) {
  return executor::WithFloat<BFloat16>(p, dtype, body);
}

// The same with i64 and i32 added.
template <typename Body>
PreparedKernel WithFloatOrInt(const executor::Prepare& p, DType dtype,
                              const Body& body) {
  return WithNumber<BFloat16>(p, dtype, body);
}

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_NUMBERS_H_
