// Shared by attention's forward and backward kernels: the description of a
// node, a block of its rows, the scores of a block, and copies of rows to
// scratch and back. See attention.cc. Only these three files include this
// header.
#ifndef LOADLINE_EXECUTOR_CPU_ATTENTION_H_
#define LOADLINE_EXECUTOR_CPU_ATTENTION_H_

#include <algorithm>
#include <limits>
#include <type_traits>

#include "executor/cpu/dropout_mask.h"
#include "executor/cpu/parallel.h"
#include "executor/cpu/prepare.h"
#include "executor/ops/attention_layout.h"

namespace loadline::executor::cpu::attention {

// The kernels of Attention and of AttentionGrad.
PreparedKernel PrepareForward(const Prepare& p);
PreparedKernel PrepareBackward(const Prepare& p);

inline constexpr int64_t kMostRows = 4 * kLanes;
inline constexpr int64_t kKeyBlock = 64;
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

inline int64_t RoundUp(int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

// Everything that is the same in every run of a node.
struct Attention : AttentionLayout {
  int mask_input = 0;
  int64_t block_rows = 0;  // a multiple of 16
  int64_t row_blocks = 0;  // of a head
  int64_t slots = 1;

  const float* Mask(const KernelArgs& args) const {
    return masked ? In(args, mask_input) : nullptr;
  }
};

// `first`: the position of q among the node's inputs.
absl::StatusOr<Attention> Describe(const Prepare& p, int first, int mask_input);

// One block of rows of one head.
struct Block {
  int64_t head;
  int64_t begin;    // its first row
  int64_t rows;     // that exist; later lanes hold meaningless numbers
  int64_t columns;  // that its last row may attend to

  Block(const Attention& a, int64_t of_head, int64_t block)
      : head(of_head),
        begin(block * a.block_rows),
        rows(std::min(a.block_rows, a.rows - begin)),
        columns(a.VisibleColumns(begin + rows)) {}
};

// to[d][r] = factor * rows[r][d]; lanes after the last row are 0.
void PackTransposed(const float* rows, int64_t stride, int64_t count,
                    int64_t width, float factor, int64_t lanes, float* to);

// rows[r][d] = from[d][r] * factor[r].
void StoreTransposed(const float* from, int64_t lanes, int64_t count,
                     int64_t width, const float* factor, float* rows,
                     int64_t stride);

// Rows as floats: in place, or copied contiguously to `to`.
struct FloatRows {
  const float* data;
  int64_t stride;
};
template <typename T>
FloatRows AsFloats(const T* rows, int64_t stride, int64_t count, int64_t width,
                   float* to) {
  if constexpr (std::is_same_v<T, float>) {
    return {rows, stride};
  } else {
    for (int64_t r = 0; r < count; ++r) {
      std::copy(rows + r * stride, rows + r * stride + width, to + r * width);
    }
    return {to, width};
  }
}
template <typename T>
inline constexpr bool kCopied = !std::is_same_v<T, float>;

// StoreTransposed into rows of any type; `floats` is the intermediate buffer.
template <typename T>
void StoreRows(const float* from, int64_t lanes, int64_t count, int64_t width,
               const float* factor, T* rows, int64_t stride, float* floats) {
  if constexpr (std::is_same_v<T, float>) {
    StoreTransposed(from, lanes, count, width, factor, rows, stride);
  } else {
    StoreTransposed(from, lanes, count, width, factor, floats, width);
    for (int64_t r = 0; r < count; ++r) {
      std::copy(floats + r * width, floats + (r + 1) * width,
                rows + r * stride);
    }
  }
}

// Calls body(t, r, factor) with the dropout factor of each probability in the
// columns [begin, end).
template <typename Body>
void ForDropoutFactors(const Attention& a, const DropoutMask& dropout,
                       const Block& block, int64_t begin, int64_t end,
                       const Body& body) {
  constexpr int64_t kBatch = DropoutMask::kBatchElements;
  alignas(64) float factors[kBatch];
  for (int64_t r = 0; r < block.rows; ++r) {
    const int64_t row = dropout.settings.offset +
                        (block.head * a.rows + block.begin + r) * a.columns;
    int64_t t = begin;
    while (t < end) {
      const int64_t first = (row + t) / 4 * 4;
      dropout.Factors(first, factors);
      const int64_t last = std::min(end, first + kBatch - row);
      for (; t < last; ++t) body(t, r, factors[row + t - first]);
    }
  }
}

// Masked scores of the columns [begin, end), whose keys are in `k`.
void Scores(const Attention& a, const Block& block, const float* q,
            const FloatRows& k, const float* mask, int64_t begin, int64_t end,
            float* scores);

}  // namespace loadline::executor::cpu::attention

#endif  // LOADLINE_EXECUTOR_CPU_ATTENTION_H_
