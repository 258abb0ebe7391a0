// Replaces the toolkit's header of this name: the parts of CUDA that our
// kernels use, in plain C++. It precedes the toolkit on the include path of the
// emulated kernels only. Launches really run; see emulator.h.
#ifndef LOADLINE_TESTS_CUDA_EMULATOR_CUDA_RUNTIME_H_
#define LOADLINE_TESTS_CUDA_EMULATOR_CUDA_RUNTIME_H_

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
// Blocks run one after the other, so one copy is enough. Every launch runs on a
// new thread, so shared memory starts fresh.
#define __shared__ static thread_local

struct dim3 {
  unsigned x, y, z;
  // NOLINTNEXTLINE: implicit, as CUDA's.
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

// Of the emulated thread that is running.
extern dim3 threadIdx, blockIdx, blockDim, gridDim;
inline constexpr int warpSize = 32;

enum cudaError_t { cudaSuccess = 0, cudaErrorLaunchFailure = 719 };
typedef struct CUstream_st* cudaStream_t;
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
};

namespace cuda_emulator {

// A source location. Waiting functions get their caller's by built-in default
// arguments, because not every clang has std::source_location.
struct Where {
  const char* file = "";
  int line = 0;
};

cudaError_t Launch(const dim3& grid, const dim3& block,
                   const std::function<void()>& thread);
void SyncThreads(const Where& where);
// Publishes `bits` and waits until all 32 lanes have; returns all bits by lane.
const uint64_t* Exchange(unsigned mask, uint64_t bits, const Where& where);
int Lane();

template <typename T>
uint64_t ToBits(T value) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}
template <typename T>
T FromBits(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace cuda_emulator

const char* cudaGetErrorString(cudaError_t error);
inline cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes,
                                   cudaStream_t) {
  std::memset(to, value, bytes);
  return cudaSuccess;
}
enum cudaMemcpyKind { cudaMemcpyDeviceToDevice = 3 };
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes,
                                   cudaMemcpyKind, cudaStream_t) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config,
                               void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  return cuda_emulator::Launch(config->gridDim, config->blockDim, [&] {
    kernel(static_cast<Parameters>(arguments)...);
  });
}

inline void __syncthreads(const char* file = __builtin_FILE(),
                          int line = __builtin_LINE()) {
  cuda_emulator::SyncThreads({file, line});
}
inline void __syncwarp(unsigned mask = 0xffffffffu,
                       const char* file = __builtin_FILE(),
                       int line = __builtin_LINE()) {
  cuda_emulator::Exchange(mask, 0, {file, line});
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask,
                  const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  const uint64_t* lanes =
      cuda_emulator::Exchange(mask, cuda_emulator::ToBits(value), {file, line});
  return cuda_emulator::FromBits<T>(lanes[cuda_emulator::Lane() ^ lane_mask]);
}
template <typename T>
T __shfl_sync(unsigned mask, T value, int lane,
              const char* file = __builtin_FILE(),
              int line = __builtin_LINE()) {
  const uint64_t* lanes =
      cuda_emulator::Exchange(mask, cuda_emulator::ToBits(value), {file, line});
  return cuda_emulator::FromBits<T>(lanes[lane & 31]);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta,
                 const char* file = __builtin_FILE(),
                 int line = __builtin_LINE()) {
  const uint64_t* lanes =
      cuda_emulator::Exchange(mask, cuda_emulator::ToBits(value), {file, line});
  const int from = cuda_emulator::Lane() - static_cast<int>(delta);
  return from < 0 ? value : cuda_emulator::FromBits<T>(lanes[from]);
}
template <typename T>
unsigned __match_any_sync(unsigned mask, T value,
                          const char* file = __builtin_FILE(),
                          int line = __builtin_LINE()) {
  const uint64_t mine = cuda_emulator::ToBits(value);
  const uint64_t* lanes = cuda_emulator::Exchange(mask, mine, {file, line});
  unsigned same = 0;
  for (int lane = 0; lane < warpSize; ++lane) {
    if (lanes[lane] == mine) same |= 1u << lane;
  }
  return same;
}

// Threads switch only at barriers and exchanges, so plain operations are
// atomic.
template <typename T>
T atomicAdd(T* at, T value) {
  static_assert(std::is_integral_v<T>, "no float atomics: not deterministic");
  const T old = *at;
  *at += value;
  return old;
}
template <typename T>
T atomicMin(T* at, T value) {
  static_assert(std::is_integral_v<T>);
  const T old = *at;
  if (value < old) *at = value;
  return old;
}

inline int __popc(unsigned bits) { return std::popcount(bits); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((uint64_t{a} * b) >> 32);
}
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }

#endif  // LOADLINE_TESTS_CUDA_EMULATOR_CUDA_RUNTIME_H_
