// Reductions over a team of threads: a warp, or a whole block.
//
// The order of combination depends on the team's size alone, so sums have the
// same bits on every run and every GPU. All threads of the team must call, and
// all get the result.
#ifndef LOADLINE_EXECUTOR_CUDA_TEAM_H_
#define LOADLINE_EXECUTOR_CUDA_TEAM_H_

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

#include "executor/cuda/launch.h"

namespace loadline::executor::cuda {

inline constexpr unsigned kAllLanes = 0xffffffffu;
inline constexpr int kWarp = 32;

// Shuffles of any type that consists of 32-bit words.
template <typename T, typename Shuffle>
__device__ inline T ShuffleWords(const T& value, const Shuffle& shuffle) {
  static_assert(sizeof(T) % sizeof(int) == 0);
  constexpr int kWords = sizeof(T) / sizeof(int);
  int words[kWords];
  memcpy(words, &value, sizeof(T));
#pragma unroll
  for (int i = 0; i < kWords; ++i) words[i] = shuffle(words[i]);
  T result;
  memcpy(&result, words, sizeof(T));
  return result;
}
template <typename T>
__device__ inline T ShuffleXor(const T& value, int lane_mask) {
  return ShuffleWords(value, [lane_mask](int word) {
    return __shfl_xor_sync(kAllLanes, word, lane_mask);
  });
}
template <typename T>
__device__ inline T ShuffleFrom(const T& value, int lane) {
  return ShuffleWords(
      value, [lane](int word) { return __shfl_sync(kAllLanes, word, lane); });
}

// Combines all threads' values, in pairs within a warp, then warp by warp.
// kTeam is 32, or the size of the (one-dimensional) block.
template <int kTeam, typename T, typename Combine>
__device__ inline T TeamReduce(T value, const Combine& combine) {
#pragma unroll
  for (int lane_mask = kWarp / 2; lane_mask > 0; lane_mask /= 2) {
    value = combine(value, ShuffleXor(value, lane_mask));
  }
  // The two orders of a pair may round differently: use the first lane's.
  if constexpr (kTeam == kWarp) return ShuffleFrom(value, 0);
  constexpr int kWarps = kTeam / kWarp;
  static_assert(kTeam % kWarp == 0);
  __shared__ T of_warp[kWarps];
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = value;
  __syncthreads();
  T result = of_warp[0];
  for (int w = 1; w < kWarps; ++w) result = combine(result, of_warp[w]);
  __syncthreads();  // before the next reduction overwrites the values
  return result;
}

struct Plus {
  template <typename T>
  __device__ T operator()(const T& a, const T& b) const {
    return a + b;
  }
};
struct Maximum {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

template <int kTeam, typename T>
__device__ inline T TeamSum(T value) {
  return TeamReduce<kTeam>(value, Plus());
}

// The team's index in the grid, and this thread's index in the team. A block of
// 256 threads is 8 teams of a warp, or one team.
template <int kTeam>
__device__ inline int64_t TeamIndex() {
  return (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kTeam;
}
template <int kTeam>
__device__ inline int64_t TeamsOfGrid() {
  return int64_t{gridDim.x} * blockDim.x / kTeam;
}
template <int kTeam>
__device__ inline int TeamThread() {
  return static_cast<int>(threadIdx.x) % kTeam;
}

// Calls body(j) for the first element of each of this thread's packs of a row;
// `size` must be a multiple of kWidth.
template <int kTeam, int kWidth, typename Body>
__device__ inline void ForRowPacks(int64_t size, const Body& body) {
  for (int64_t j = int64_t{TeamThread<kTeam>()} * kWidth; j < size;
       j += int64_t{kTeam} * kWidth) {
    body(j);
  }
}

// Longer rows get a block each, shorter ones a warp.
inline constexpr int64_t kLongRow = 2048;
inline unsigned GridForRows(int64_t rows, int64_t size) {
  return GridFor(rows * (size > kLongRow ? kBlock : kWarp));
}

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_TEAM_H_
