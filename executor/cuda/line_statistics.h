// The largest element of a line and the sum of exp(x - largest), in one pass:
// when a new largest element appears, the sum so far is rescaled. Source: M.
// Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018.
#ifndef LOADLINE_EXECUTOR_CUDA_LINE_STATISTICS_H_
#define LOADLINE_EXECUTOR_CUDA_LINE_STATISTICS_H_

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

#include "executor/cuda/math.h"
#include "executor/cuda/numbers.h"
#include "executor/cuda/team.h"
#include "executor/ops/prepare.h"

namespace loadline::executor::cuda {

struct ExpSum {
  float largest;
  float sum;
};

__device__ inline ExpSum EmptyExpSum() { return {-INFINITY, 0.0f}; }

struct AddExpSums {
  __device__ ExpSum operator()(const ExpSum& a, const ExpSum& b) const {
    const float largest = fmaxf(a.largest, b.largest);
    // Only minus infinities so far: their difference would be NaN.
    if (largest == -INFINITY) return {largest, a.sum + b.sum};
    return {largest, a.sum * Math::Exp(a.largest - largest) +
                         b.sum * Math::Exp(b.largest - largest)};
  }
};

__device__ inline void AddElement(ExpSum& line, float x) {
  if (x > line.largest) {
    line.sum = line.sum * Math::Exp(line.largest - x) + 1.0f;
    line.largest = x;
  } else {
    // A line of minus infinities has no softmax: NaN, as on the CPU.
    line.sum += Math::Exp(x - line.largest);
  }
}

// Statistics of x[0, size), computed by a team.
template <int kTeam, int kWidth, typename T>
__device__ ExpSum RowExpSum(const T* x, int64_t size) {
  ExpSum line = EmptyExpSum();
  ForRowPacks<kTeam, kWidth>(size, [&](int64_t j) {
    const Pack<T, kWidth> pack = LoadPack<kWidth>(x + j);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) AddElement(line, Widen(pack.at[k]));
  });
  return TeamReduce<kTeam>(line, AddExpSums());
}

// Offset of a line's first element in [outer, size, inner].
__device__ inline int64_t FirstOfLine(const AxisSplit& s, int64_t line) {
  return line / s.inner * s.size * s.inner + line % s.inner;
}

// Statistics of x[0], x[inner], ..., computed by one thread.
template <typename T>
__device__ ExpSum LineExpSum(const AxisSplit& s, const T* x) {
  ExpSum line = EmptyExpSum();
  for (int64_t k = 0; k < s.size; ++k) AddElement(line, Widen(x[k * s.inner]));
  return line;
}

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_LINE_STATISTICS_H_
