// Attention: for a block of rows, computes all scores, their maxima and sums,
// and multiplies them by the values. Blocks are independent tasks. Tested in
// tests/conformance/.
#include "executor/cpu/attention.h"
#include "executor/cpu/tile_product.h"
#include "executor/cpu/vector_math.h"
#include "executor/ops/bf16.h"
#include "executor/ops/dispatch.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cpu::attention {
namespace {

// Layout of the scratch floats of a forward task.
template <typename T>
struct ForwardScratch {
  float* q;       // q'[width][lanes]
  float* y;       // y'[value_width][lanes]
  float* scores;  // [columns][lanes]
  float* rows;    // one block of any tensor, if it must be copied

  static int64_t Floats(const Attention& a) {
    return (a.width + a.value_width + a.columns) * a.block_rows +
           (kCopied<T> ? kKeyBlock * std::max(a.width, a.value_width) : 0);
  }
  ForwardScratch(const Attention& a, float* at)
      : q(at),
        y(q + a.width * a.block_rows),
        scores(y + a.value_width * a.block_rows),
        rows(scores + a.columns * a.block_rows) {}
};

template <typename T>
void ForwardBlock(const Attention& a, const Block& block, const T* q,
                  const T* k, const T* v, const float* mask,
                  const DropoutMask& dropout, const ForwardScratch<T>& scratch,
                  T* y, float* lse) {
  const int64_t lanes = a.block_rows;
  const int64_t q_row = a.RowStride(a.width);
  const int64_t v_row = a.RowStride(a.value_width);
  const FloatRows queries = AsFloats(q + block.begin * q_row, q_row, block.rows,
                                     a.width, scratch.rows);
  PackTransposed(queries.data, queries.stride, block.rows, a.width, a.scale,
                 lanes, scratch.q);
  alignas(64) float largest[kMostRows];
  alignas(64) float total[kMostRows] = {};
  std::fill(largest, largest + lanes, -kInfinity);
  for (int64_t t = 0; t < block.columns; t += kKeyBlock) {
    const int64_t end = std::min(block.columns, t + kKeyBlock);
    float* scores = scratch.scores + t * lanes;
    Scores(a, block, scratch.q,
           AsFloats(k + t * q_row, q_row, end - t, a.width, scratch.rows), mask,
           t, end, scores);
    for (int64_t i = 0; i < (end - t) * lanes; i += lanes) {
#pragma omp simd
      for (int64_t r = 0; r < lanes; ++r) {
        largest[r] = scores[i + r] > largest[r] ? scores[i + r] : largest[r];
      }
    }
  }
  for (int64_t t = 0; t < block.columns; t += kKeyBlock) {
    const int64_t end = std::min(block.columns, t + kKeyBlock);
    float* p = scratch.scores + t * lanes;
    alignas(64) float sum[kMostRows] = {};
    for (int64_t i = 0; i < (end - t) * lanes; i += lanes) {
#pragma omp simd
      for (int64_t r = 0; r < lanes; ++r) {
        p[i + r] = Exp(p[i + r] - largest[r]);
        sum[r] += p[i + r];
      }
    }
    for (int64_t r = 0; r < lanes; ++r) total[r] += sum[r];
    if (dropout.settings.threshold != 0) {
      ForDropoutFactors(a, dropout, block, t, end,
                        [&](int64_t column, int64_t r, float factor) {
                          p[(column - t) * lanes + r] *= factor;
                        });
    }
    const FloatRows values =
        AsFloats(v + t * v_row, v_row, end - t, a.value_width, scratch.rows);
    TileProduct(a.value_width, lanes, end - t, {values.data, 1, values.stride},
                p, lanes, scratch.y, lanes, t > 0);
  }
  for (int64_t r = 0; r < lanes; ++r) {
    largest[r] += Log(total[r]);
    total[r] = 1.0f / total[r];
  }
  StoreRows(scratch.y, lanes, block.rows, a.value_width, total,
            y + block.begin * v_row, v_row, scratch.rows);
  std::copy(largest, largest + block.rows, lse + block.begin);
}

template <typename T>
PreparedKernel Forward(Attention a) {
  const int64_t tasks = a.heads * a.row_blocks;
  a.slots = TaskSlots(tasks);
  const int64_t floats = ForwardScratch<T>::Floats(a);
  return MakeKernel(
      [a, tasks, floats](const KernelArgs& args) {
        const AttentionLayout& s = a;
        const DropoutMask dropout = DropoutMask{a.dropout}.At(*args.scalars);
        const float* mask = a.Mask(args);
        ParallelTasks(tasks, a.slots, [&](int64_t task, int64_t slot) {
          // A causal head's last blocks take longest, so they start first.
          const int64_t head = task / a.row_blocks;
          const Block block(a, head, a.row_blocks - 1 - task % a.row_blocks);
          ForwardBlock<T>(
              a, block, In<T>(args, 0) + a.HeadStart(head, s.rows, s.width),
              In<T>(args, 1) + a.HeadStart(head, s.columns, s.width),
              In<T>(args, 2) + a.HeadStart(head, s.columns, s.value_width),
              mask, dropout,
              ForwardScratch<T>{a, Workspace(args) + slot * floats},
              Out<T>(args, 0) + a.HeadStart(head, s.rows, s.value_width),
              Out(args, 1) + head * s.rows);
        });
      },
      a.slots * floats * static_cast<int64_t>(sizeof(float)));
}

}  // namespace

PreparedKernel PrepareForward(const Prepare& p) {
  LOADLINE_ASSIGN_OR_RETURN(const Attention a, Describe(p, 0, 3));
  return WithFloat<Bf16>(p, p.input(0).dtype,
                         [&](auto type) { return Forward<decltype(type)>(a); });
}

}  // namespace loadline::executor::cpu::attention
