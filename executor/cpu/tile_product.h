// Small matrix products inside a kernel whose operands are in cache: no
// packing, threads or heap. Larger products use oneDNN.
//
// A tile of c stays in registers during the loop over the depth. Each element
// is one sum in the order of the depth, so its bits do not depend on the
// tiling.
#ifndef LOADLINE_EXECUTOR_CPU_TILE_PRODUCT_H_
#define LOADLINE_EXECUTOR_CPU_TILE_PRODUCT_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "executor/cpu/parallel.h"

namespace loadline::executor::cpu {

// An m x depth matrix with arbitrary strides.
struct StridedMatrix {
  const float* data;
  int64_t row;   // elements from one row to the next
  int64_t step;  // and from one column to the next
};

namespace tile_product_internal {

// Lanes are passed by reference: passing vectors wider than the machine's
// registers by value depends on compiler settings.
inline void LoadLanes(const float* from, Lanes* lanes) {
  std::memcpy(lanes, from, sizeof(*lanes));
}

// Writes the first `count` lanes; `add`: adds them to the memory's contents.
inline void StoreLanes(const Lanes& lanes, float* to, int64_t count, bool add) {
  for (int64_t i = 0; i < count; ++i) to[i] = lanes[i] + (add ? to[i] : 0.0f);
}

// kRows rows and `columns` columns, with 16 (kVectors - 1) < columns <= 16
// kVectors. Loops are unrolled by name, because only then does GCC keep `sum`
// in registers.
template <int kRows, int kVectors>
void Tile(const StridedMatrix& a, const float* b, int64_t b_row, int64_t depth,
          float* c, int64_t c_row, int64_t columns, bool add) {
  Lanes sum[kRows][kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[i][v] = Lanes{};
  }
  for (int64_t k = 0; k < depth; ++k) {
    Lanes factor[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      LoadLanes(b + k * b_row + v * kLanes, &factor[v]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const float x = a.data[i * a.row + k * a.step];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[i][v] += x * factor[v];
    }
  }
  const int64_t tail = columns - (kVectors - 1) * kLanes;
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      float* to = c + i * c_row + v * kLanes;
      if (v == kVectors - 1 && tail < kLanes) {
        StoreLanes(sum[i][v], to, tail, add);
        continue;
      }
      if (add) {
        Lanes before;
        LoadLanes(to, &before);
        sum[i][v] += before;
      }
      std::memcpy(to, &sum[i][v], sizeof(Lanes));
    }
  }
}

template <int kRows, int kVectors>
void Panel(int64_t rows, const StridedMatrix& a, const float* b, int64_t b_row,
           int64_t depth, float* c, int64_t c_row, int64_t columns, bool add) {
  int64_t i = 0;
  const auto at = [&](int64_t row) {
    return StridedMatrix{a.data + row * a.row, a.row, a.step};
  };
  for (; i + kRows <= rows; i += kRows) {
    Tile<kRows, kVectors>(at(i), b, b_row, depth, c + i * c_row, c_row, columns,
                          add);
  }
  for (; i < rows; ++i) {
    Tile<1, kVectors>(at(i), b, b_row, depth, c + i * c_row, c_row, columns,
                      add);
  }
}

}  // namespace tile_product_internal

// c = a b, or c += a b if `add`. Rows of b are b_row elements apart and must be
// readable up to the next multiple of 16 columns. Rows of c are c_row apart;
// nothing beyond `columns` is touched.
inline void TileProduct(int64_t rows, int64_t columns, int64_t depth,
                        const StridedMatrix& a, const float* b, int64_t b_row,
                        float* c, int64_t c_row, bool add) {
  using namespace tile_product_internal;  // NOLINT: a function's own scope
  constexpr int64_t kWidest = 4 * kLanes;
  for (int64_t j = 0; j < columns; j += kWidest) {
    const int64_t n = std::min(kWidest, columns - j);
    switch ((n + kLanes - 1) / kLanes) {
      case 1:
        Panel<8, 1>(rows, a, b + j, b_row, depth, c + j, c_row, n, add);
        break;
      case 2:
        Panel<8, 2>(rows, a, b + j, b_row, depth, c + j, c_row, n, add);
        break;
      case 3:
        Panel<4, 3>(rows, a, b + j, b_row, depth, c + j, c_row, n, add);
        break;
      default:
        Panel<4, 4>(rows, a, b + j, b_row, depth, c + j, c_row, n, add);
    }
  }
}

}  // namespace loadline::executor::cpu

#endif  // LOADLINE_EXECUTOR_CPU_TILE_PRODUCT_H_
