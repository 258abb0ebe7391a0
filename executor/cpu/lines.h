// A tensor viewed as lines along one axis, for softmax and its losses.
//
// In [outer, size, inner] a line is contiguous if inner is 1; otherwise `inner`
// lines are interleaved, and a kernel takes up to kLineGroup adjacent lines at
// once so that loops read memory in order.
#ifndef LOADLINE_EXECUTOR_CPU_LINES_H_
#define LOADLINE_EXECUTOR_CPU_LINES_H_

#include <limits>

#include "executor/cpu/parallel.h"
#include "executor/cpu/prepare.h"
#include "executor/cpu/vector_math.h"

namespace loadline::executor::cpu {

inline constexpr int64_t kLineGroup = 64;

// Largest of x[0, n), floats or bf16. Ignores NaNs; a sum over the line finds
// them anyway.
template <typename T>
float MaxOf(const T* x, int64_t n) {
  constexpr int kWidth = 4 * kLanes;
  float best[kWidth];
  std::fill(best, best + kWidth, -std::numeric_limits<float>::infinity());
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
#pragma omp simd
    for (int l = 0; l < kWidth; ++l) {
      const float value = x[i + l];
      best[l] = value > best[l] ? value : best[l];
    }
  }
  for (int l = 0; i + l < n; ++l) {
    best[l] = std::max<float>(best[l], x[i + l]);
  }
  return *std::max_element(best, best + kWidth);
}

// Calls body(offset, count) for `count` adjacent lines, the first beginning at
// element `offset`; elements of a line are `inner` apart.
template <typename Body>
void ForLineGroups(const AxisSplit& s, const Body& body) {
  const int64_t groups = (s.inner + kLineGroup - 1) / kLineGroup;
  ParallelEach(s.outer * groups, s.size * std::min(s.inner, kLineGroup),
               [&](int64_t unit) {
                 const int64_t first = unit % groups * kLineGroup;
                 body(unit / groups * s.size * s.inner + first,
                      std::min(kLineGroup, s.inner - first));
               });
}

// For `count` adjacent lines: the largest element, and the sum of exp(x -
// largest).
template <typename T>
void LineStatistics(const AxisSplit& s, const T* x, int64_t count,
                    float* largest, float* sum) {
  std::fill(largest, largest + count, -std::numeric_limits<float>::infinity());
  std::fill(sum, sum + count, 0.0f);
  for (int64_t k = 0; k < s.size; ++k) {
    const T* row = x + k * s.inner;
#pragma omp simd
    for (int64_t j = 0; j < count; ++j) {
      const float value = row[j];
      largest[j] = value > largest[j] ? value : largest[j];
    }
  }
  for (int64_t k = 0; k < s.size; ++k) {
    const T* row = x + k * s.inner;
#pragma omp simd
    for (int64_t j = 0; j < count; ++j) sum[j] += Exp(row[j] - largest[j]);
  }
}

}  // namespace loadline::executor::cpu

#endif  // LOADLINE_EXECUTOR_CPU_LINES_H_
