// What ReduceMax, ReduceMin, CumSum and TopK do with one line, on every device:
// one loop in the order of the elements, so that all devices give the same
// bits. Elements of a line are `stride` apart.
#ifndef LOADLINE_EXECUTOR_OPS_LINE_FORMULAS_H_
#define LOADLINE_EXECUTOR_OPS_LINE_FORMULAS_H_

#include <cstdint>

#include "executor/ops/prepare.h"
#include "models/host_device.h"

namespace loadline::executor {

// Offset of the first element of a line.
LOADLINE_HOST_DEVICE inline int64_t LineStart(const AxisSplit& s,
                                              int64_t line) {
  return line / s.inner * s.size * s.inner + line % s.inner;
}

// Whether a stands before b. A NaN is larger than any number, as in PyTorch.
template <typename T>
LOADLINE_HOST_DEVICE bool Precedes(T a, T b, bool largest) {
  if (a != a || b != b) return largest ? a != a && b == b : a == a && b != b;
  return largest ? a > b : a < b;
}

// The largest or smallest element; NaN if one is.
struct ExtremeLine {
  bool largest;

  template <typename T>
  LOADLINE_HOST_DEVICE void operator()(const T* x, T* y, int64_t size,
                                       int64_t stride) const {
    T best = x[0];
    for (int64_t i = 1; i < size; ++i) {
      const T next = x[i * stride];
      const bool better = largest ? next > best : next < best;
      best = best == best && (better || next != next) ? next : best;
    }
    *y = best;
  }
};

struct CumSumLine {
  bool exclusive;
  bool reverse;

  template <typename T>
  LOADLINE_HOST_DEVICE void operator()(const T* x, T* y, int64_t size,
                                       int64_t stride) const {
    T sum = 0;
    for (int64_t k = 0; k < size; ++k) {
      const int64_t at = (reverse ? size - 1 - k : k) * stride;
      const T before = sum;
      sum += x[at];
      y[at] = exclusive ? before : sum;
    }
  }
};

// The positions of the k first elements in their order. Equal ones are in the
// order of positions, or of positions from the end. Needs no memory: each step
// looks for the first element after the last one found.
struct TopKLine {
  int64_t k;
  bool largest;
  bool last;

  // Whether element i stands before element j.
  template <typename T>
  LOADLINE_HOST_DEVICE bool Before(const T* x, int64_t stride, int64_t i,
                                   int64_t j) const {
    const T a = x[i * stride], b = x[j * stride];
    if (Precedes(a, b, largest)) return true;
    if (Precedes(b, a, largest)) return false;
    return last ? i > j : i < j;
  }

  template <typename T>
  LOADLINE_HOST_DEVICE void operator()(const T* x, int64_t* y, int64_t size,
                                       int64_t stride) const {
    int64_t found = -1;
    for (int64_t n = 0; n < k; ++n) {
      int64_t best = -1;
      for (int64_t i = 0; i < size; ++i) {
        if (found >= 0 && !Before(x, stride, found, i)) continue;
        if (best < 0 || Before(x, stride, i, best)) best = i;
      }
      found = best;
      y[n * stride] = found;
    }
  }
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_OPS_LINE_FORMULAS_H_
