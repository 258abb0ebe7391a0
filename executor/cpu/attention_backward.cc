// AttentionGrad: recomputes a block's probabilities from the saved statistic,
// one block of keys at a time. A task is a head; its blocks of rows add to the
// same dk and dv, in order. Tested in tests/conformance/.
#include "executor/cpu/attention.h"
#include "executor/cpu/tile_product.h"
#include "executor/cpu/vector_math.h"
#include "executor/ops/bf16.h"
#include "executor/ops/dispatch.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cpu::attention {
namespace {

// Copies rows, each padded to whole vectors with zeros.
template <typename T>
void PackRows(const T* rows, int64_t stride, int64_t count, int64_t width,
              int64_t lanes, float* to) {
  const int64_t padded = RoundUp(width);
  for (int64_t r = 0; r < lanes; ++r) {
    float* row = to + r * padded;
    const int64_t filled = r < count ? width : 0;
    std::copy(rows + r * stride, rows + r * stride + filled, row);
    std::fill(row + filled, row + padded, 0.0f);
  }
}

// Layout of the scratch floats of a backward task.
template <typename T>
struct BackwardScratch {
  float* q;        // scale q'[width][lanes]
  float* dy;       // dy'[value_width][lanes]
  float* dq;       // dq'[width][lanes]
  float* q_rows;   // q[lanes][width, padded]
  float* dy_rows;  // dy[lanes][value_width, padded]
  float* p;        // p'[key block][lanes]
  float* dp;
  float* kept;  // p' after dropout; p itself where there is none
  // For rows that must be copied: a block of keys, one of values, and the
  // head's dk and dv.
  float *k_rows, *v_rows, *dk, *dv;

  static int64_t Floats(const Attention& a) {
    const AttentionLayout& s = a;
    return (2 * s.width + s.value_width + RoundUp(s.width) +
            RoundUp(s.value_width) +
            (a.dropout.threshold != 0 ? 3 : 2) * kKeyBlock) *
               a.block_rows +
           (kCopied<T> ? (kKeyBlock + s.columns) * (s.width + s.value_width)
                       : 0);
  }
  BackwardScratch(const Attention& a, float* at)
      : q(at),
        dy(q + a.width * a.block_rows),
        dq(dy + a.value_width * a.block_rows),
        q_rows(dq + a.width * a.block_rows),
        dy_rows(q_rows + RoundUp(a.width) * a.block_rows),
        p(dy_rows + RoundUp(a.value_width) * a.block_rows),
        dp(p + kKeyBlock * a.block_rows),
        kept(a.dropout.threshold != 0 ? dp + kKeyBlock * a.block_rows : p),
        k_rows((a.dropout.threshold != 0 ? kept : dp) +
               kKeyBlock * a.block_rows),
        v_rows(k_rows + kKeyBlock * a.width),
        dk(v_rows + kKeyBlock * a.value_width),
        dv(dk + a.columns * a.width) {}
};

// One head's tensors; dk and dv in the output or in scratch.
template <typename T>
struct Head {
  const T *dy, *q, *k, *v, *y;
  const float *lse, *mask;
  T* dq;
  float *dk, *dv;
  int64_t dk_row, dv_row;
};

// p' = exp(scores' - lse), and dp' = scale p' (dy v' - delta).
template <typename T>
void ProbabilitiesAndTheirGradient(const Attention& a, const Block& block,
                                   const FloatRows& k, const FloatRows& v,
                                   const float* mask,
                                   const DropoutMask& dropout, const float* lse,
                                   const float* delta, int64_t begin,
                                   int64_t end,
                                   const BackwardScratch<T>& scratch) {
  const int64_t lanes = a.block_rows;
  const int64_t elements = (end - begin) * lanes;
  float* p = scratch.p;
  float* dp = scratch.dp;
  Scores(a, block, scratch.q, k, mask, begin, end, p);
  for (int64_t i = 0; i < elements; i += lanes) {
#pragma omp simd
    for (int64_t r = 0; r < lanes; ++r) p[i + r] = Exp(p[i + r] - lse[r]);
  }
  TileProduct(end - begin, lanes, a.value_width, {v.data, v.stride, 1},
              scratch.dy, lanes, dp, lanes, false);
  if (dropout.settings.threshold != 0) {
    std::fill(scratch.kept, scratch.kept + elements, 0.0f);
    ForDropoutFactors(a, dropout, block, begin, end,
                      [&](int64_t column, int64_t r, float factor) {
                        const int64_t i = (column - begin) * lanes + r;
                        scratch.kept[i] = p[i] * factor;
                        dp[i] *= factor;
                      });
  }
  for (int64_t i = 0; i < elements; i += lanes) {
#pragma omp simd
    for (int64_t r = 0; r < lanes; ++r) {
      dp[i + r] = a.scale * p[i + r] * (dp[i + r] - delta[r]);
    }
  }
}

template <typename T>
void BackwardBlock(const Attention& a, const Block& block, const Head<T>& h,
                   const DropoutMask& dropout,
                   const BackwardScratch<T>& scratch) {
  const AttentionLayout& s = a;
  const int64_t lanes = a.block_rows;
  const int64_t row = a.RowStride(s.width);
  const int64_t v_row = a.RowStride(s.value_width);
  const int64_t padded = RoundUp(s.width);
  const int64_t v_padded = RoundUp(s.value_width);
  const T* y = h.y + block.begin * v_row;
  PackRows(h.q + block.begin * row, row, block.rows, s.width, lanes,
           scratch.q_rows);
  PackRows(h.dy + block.begin * v_row, v_row, block.rows, s.value_width, lanes,
           scratch.dy_rows);
  PackTransposed(scratch.q_rows, padded, lanes, s.width, a.scale, lanes,
                 scratch.q);
  PackTransposed(scratch.dy_rows, v_padded, lanes, s.value_width, 1, lanes,
                 scratch.dy);
  // A statistic of infinity makes the probabilities of nonexistent rows 0.
  alignas(64) float lse[kMostRows];
  alignas(64) float delta[kMostRows] = {};
  alignas(64) float ones[kMostRows];
  std::fill(lse, lse + lanes, kInfinity);
  std::fill(ones, ones + lanes, 1.0f);
  std::copy(h.lse + block.begin, h.lse + block.begin + block.rows, lse);
  for (int64_t r = 0; r < block.rows; ++r) {
    delta[r] = static_cast<float>(SumOf(0, s.value_width, [&](int64_t e) {
      return scratch.dy_rows[r * v_padded + e] * y[r * v_row + e];
    }));
  }
  for (int64_t t = 0; t < block.columns; t += kKeyBlock) {
    const int64_t end = std::min(block.columns, t + kKeyBlock);
    const FloatRows k =
        AsFloats(h.k + t * row, row, end - t, s.width, scratch.k_rows);
    const FloatRows v = AsFloats(h.v + t * v_row, v_row, end - t, s.value_width,
                                 scratch.v_rows);
    ProbabilitiesAndTheirGradient(a, block, k, v, h.mask, dropout, lse, delta,
                                  t, end, scratch);
    TileProduct(end - t, s.value_width, lanes, {scratch.kept, lanes, 1},
                scratch.dy_rows, v_padded, h.dv + t * h.dv_row, h.dv_row, true);
    TileProduct(end - t, s.width, lanes, {scratch.dp, lanes, 1}, scratch.q_rows,
                padded, h.dk + t * h.dk_row, h.dk_row, true);
    TileProduct(s.width, lanes, end - t, {k.data, 1, k.stride}, scratch.dp,
                lanes, scratch.dq, lanes, t > 0);
  }
  StoreRows(scratch.dq, lanes, block.rows, s.width, ones,
            h.dq + block.begin * row, row, scratch.q_rows);
}

void ZeroRows(int64_t rows, int64_t width, int64_t stride, float* at) {
  for (int64_t r = 0; r < rows; ++r) {
    std::fill(at + r * stride, at + r * stride + width, 0.0f);
  }
}

template <typename T>
void BackwardHead(const Attention& a, int64_t head, const KernelArgs& args,
                  const DropoutMask& dropout,
                  const BackwardScratch<T>& scratch) {
  const AttentionLayout& s = a;
  const int64_t queries = a.HeadStart(head, s.rows, s.width);
  const int64_t keys = a.HeadStart(head, s.columns, s.width);
  const int64_t values = a.HeadStart(head, s.columns, s.value_width);
  const int64_t out = a.HeadStart(head, s.rows, s.value_width);
  const int64_t row = a.RowStride(s.width);
  const int64_t v_row = a.RowStride(s.value_width);
  T* dk = Out<T>(args, 1) + keys;
  T* dv = Out<T>(args, 2) + values;
  Head<T> h = {In<T>(args, 0) + out,
               In<T>(args, 1) + queries,
               In<T>(args, 2) + keys,
               In<T>(args, 3) + values,
               In<T>(args, 4) + out,
               In(args, 5) + head * s.rows,
               a.Mask(args),
               Out<T>(args, 0) + queries,
               scratch.dk,
               scratch.dv,
               s.width,
               s.value_width};
  if constexpr (!kCopied<T>) {
    h.dk = dk;
    h.dv = dv;
    h.dk_row = row;
    h.dv_row = v_row;
  }
  ZeroRows(s.columns, s.width, h.dk_row, h.dk);
  ZeroRows(s.columns, s.value_width, h.dv_row, h.dv);
  for (int64_t block = 0; block < a.row_blocks; ++block) {
    BackwardBlock(a, {a, head, block}, h, dropout, scratch);
  }
  if constexpr (kCopied<T>) {
    for (int64_t t = 0; t < s.columns; ++t) {
      std::copy(h.dk + t * s.width, h.dk + (t + 1) * s.width, dk + t * row);
      std::copy(h.dv + t * s.value_width, h.dv + (t + 1) * s.value_width,
                dv + t * v_row);
    }
  }
}

template <typename T>
PreparedKernel Backward(Attention a) {
  a.slots = TaskSlots(a.heads);
  const int64_t floats = BackwardScratch<T>::Floats(a);
  return MakeKernel(
      [a, floats](const KernelArgs& args) {
        const DropoutMask dropout = DropoutMask{a.dropout}.At(*args.scalars);
        ParallelTasks(a.heads, a.slots, [&](int64_t head, int64_t slot) {
          BackwardHead<T>(a, head, args, dropout,
                          {a, Workspace(args) + slot * floats});
        });
      },
      a.slots * floats * static_cast<int64_t>(sizeof(float)));
}

}  // namespace

PreparedKernel PrepareBackward(const Prepare& p) {
  LOADLINE_ASSIGN_OR_RETURN(const Attention a, Describe(p, 1, 6));
  return WithFloat<Bf16>(p, p.input(1).dtype, [&](auto type) {
    return Backward<decltype(type)>(a);
  });
}

}  // namespace loadline::executor::cpu::attention
