// Small transpositions in registers, for kernels that transpose a block of a
// matrix while copying it to or from scratch.
#ifndef LOADLINE_EXECUTOR_CPU_TRANSPOSE_LANES_H_
#define LOADLINE_EXECUTOR_CPU_TRANSPOSE_LANES_H_

#include <cstdint>
#include <cstring>

#include "executor/cpu/parallel.h"

namespace loadline::executor::cpu {

namespace transpose_lanes_internal {

// Transposes 16 vectors of 16. Each round interleaves vectors i and i + 8,
// which rotates the eight bits of (vector, lane) by one; after four rounds
// vector and lane are exchanged.
inline void Transpose(Lanes (&x)[kLanes]) {
#pragma GCC unroll 4
  for (int round = 0; round < 4; ++round) {
    Lanes y[kLanes];
#pragma GCC unroll 8
    for (int i = 0; i < kLanes / 2; ++i) {
      y[2 * i] = __builtin_shufflevector(x[i], x[i + 8], 0, 16, 1, 17, 2, 18, 3,
                                         19, 4, 20, 5, 21, 6, 22, 7, 23);
      y[2 * i + 1] =
          __builtin_shufflevector(x[i], x[i + 8], 8, 24, 9, 25, 10, 26, 11, 27,
                                  12, 28, 13, 29, 14, 30, 15, 31);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) x[i] = y[i];
  }
}

}  // namespace transpose_lanes_internal

// to[j][i] = from[i][j] * factor(j) for i < rows, j < columns; rows of
// `from` are from_row elements apart and those of `to` to_row.
template <typename Factor>
void TransposeBlock(const float* from, int64_t from_row, int64_t rows,
                    int64_t columns, float* to, int64_t to_row,
                    const Factor& factor) {
  const int64_t whole_rows = rows / kLanes * kLanes;
  const int64_t whole_columns = columns / kLanes * kLanes;
  const auto copy = [&](int64_t i, int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      to[j * to_row + i] = from[i * from_row + j] * factor(j);
    }
  };
  for (int64_t i = 0; i < whole_rows; i += kLanes) {
    for (int64_t j = 0; j < whole_columns; j += kLanes) {
      Lanes x[kLanes];
#pragma GCC unroll 16
      for (int l = 0; l < kLanes; ++l) {
        std::memcpy(&x[l], from + (i + l) * from_row + j, sizeof(Lanes));
      }
      transpose_lanes_internal::Transpose(x);
#pragma GCC unroll 16
      for (int l = 0; l < kLanes; ++l) {
        x[l] *= factor(j + l);
        std::memcpy(to + (j + l) * to_row + i, &x[l], sizeof(Lanes));
      }
    }
    for (int64_t r = i; r < i + kLanes; ++r) copy(r, whole_columns, columns);
  }
  for (int64_t i = whole_rows; i < rows; ++i) copy(i, 0, columns);
}

}  // namespace loadline::executor::cpu

#endif  // LOADLINE_EXECUTOR_CPU_TRANSPOSE_LANES_H_
