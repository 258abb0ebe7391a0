// Attention without the matrix of probabilities. A block of up to 64 queries
// lies across the lanes of vectors and keys run down, so that maxima, sums and
// statistics of rows are plain vectors:
//
//   scores'[t][r] = k[t] . (scale q[r])     p' = exp(scores' - max)
//   y'[e][r] = sum_t v[t][e] p'[t][r] / sum_t p'[t][r]
//
// Backward takes keys in blocks of 64 too and holds no full row of anything:
// the statistic gives p again. What no row of a causal block sees is skipped.
//
// Forward, a task is a block of rows; backward it is a head, whose blocks add
// to dk and dv in order. So no result depends on the number of threads.
//
// In bf16 rows become floats on their way into scratch, and dk and dv are
// floats until the head is done. Tested in tests/conformance/.
#include "models/ops/attention.h"

#include <limits>
#include <type_traits>

#include "executor/bf16.h"
#include "executor/cpu/dropout_mask.h"
#include "executor/cpu/families.h"
#include "executor/cpu/parallel.h"
#include "executor/cpu/tile_product.h"
#include "executor/cpu/transpose_lanes.h"
#include "executor/cpu/vector_math.h"
#include "executor/dispatch.h"
#include "executor/loop_nest.h"
#include "planner/status_macros.h"

namespace loadline::executor::cpu {
namespace {

constexpr int64_t kMostRows = 4 * kLanes;
constexpr int64_t kKeyBlock = 64;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

int64_t RoundUp(int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

// An additive mask over [batch, heads, rows, columns].
struct MaskStrides {
  bool present = false;
  Ints leading;  // of the scores' leading dimensions
  int64_t row = 0;
  int64_t column = 0;
};

// All that stays the same from run to run.
struct Attention {
  models::AttentionShape shape;
  bool causal = false;
  float scale = 1;
  DropoutMask dropout;
  MaskStrides mask;
  int mask_input = 0;
  int64_t block_rows = 0;  // a multiple of 16
  int64_t row_blocks = 0;  // of a head
  int64_t slots = 1;

  // Elements from one row of a head to the next, at a row width.
  int64_t RowStride(int64_t width) const {
    return shape.interleaved ? shape.heads * width : width;
  }
  // First element of a head, `rows` rows to a head.
  int64_t HeadStart(int64_t head, int64_t rows, int64_t width) const {
    if (!shape.interleaved) return head * rows * width;
    return (head / shape.heads * rows * shape.heads + head % shape.heads) *
           width;
  }
  int64_t heads() const { return shape.batch * shape.heads; }
  int64_t VisibleColumns(int64_t end_row) const {
    return causal ? std::min(shape.columns, end_row) : shape.columns;
  }
};

// `first` is the position of q among the inputs.
absl::StatusOr<Attention> Describe(const Prepare& p, int first,
                                   int mask_input) {
  Attention a;
  LOADLINE_ASSIGN_OR_RETURN(
      a.shape,
      models::AttentionShapeOf(p.node(), p.input(first), p.input(first + 1),
                               p.input(first + 2)));
  a.causal = p.attributes().Int("causal", 0) != 0;
  a.scale = static_cast<float>(p.attributes().Float("scale", 1));
  LOADLINE_ASSIGN_OR_RETURN(a.dropout.settings, MakeDropoutSettings(p, 0));
  a.mask_input = mask_input;
  if (p.has_input(mask_input)) {
    const Ints strides =
        BroadcastStrides(p.input(mask_input).dims, a.shape.ScoreDims());
    a.mask.present = true;
    a.mask.leading.assign(strides.begin(), strides.end() - 2);
    a.mask.row = strides[strides.size() - 2];
    a.mask.column = strides.back();
  }
  a.block_rows = std::min(kMostRows, RoundUp(a.shape.rows));
  a.row_blocks = (a.shape.rows + a.block_rows - 1) / a.block_rows;
  return a;
}

// One block of rows of one head.
struct Block {
  int64_t head;
  int64_t begin;    // its first row
  int64_t rows;     // that exist; the lanes behind them hold nothing of use
  int64_t columns;  // that its last row sees

  Block(const Attention& a, int64_t of_head, int64_t block)
      : head(of_head),
        begin(block * a.block_rows),
        rows(std::min(a.block_rows, a.shape.rows - begin)),
        columns(a.VisibleColumns(begin + rows)) {}
};

// to[d][r] = factor * rows[r][d], 0 in the lanes behind the last row.
void PackTransposed(const float* rows, int64_t stride, int64_t count,
                    int64_t width, float factor, int64_t lanes, float* to) {
  TransposeBlock(rows, stride, count, width, to, lanes,
                 [factor](int64_t) { return factor; });
  for (int64_t d = 0; count < lanes && d < width; ++d) {
    std::fill(to + d * lanes + count, to + (d + 1) * lanes, 0.0f);
  }
}

// rows[r][d] = from[d][r] * factor[r].
void StoreTransposed(const float* from, int64_t lanes, int64_t count,
                     int64_t width, const float* factor, float* rows,
                     int64_t stride) {
  TransposeBlock(from, lanes, width, count, rows, stride,
                 [factor](int64_t r) { return factor[r]; });
}

// Rows as floats: where they lie, or copied to `to`, one behind the other.
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
constexpr bool kCopied = !std::is_same_v<T, float>;

// StoreTransposed into rows of any type; `floats` holds them meanwhile.
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

// Rows as they are, each padded to whole vectors; zeros behind the last.
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

// Adds the mask to scores'[t][r] of the columns [begin, end), and minus
// infinity where a causal row does not see.
void MaskScores(const Attention& a, const Block& block, const float* mask,
                int64_t begin, int64_t end, float* scores) {
  const int64_t lanes = a.block_rows;
  if (a.mask.present) {
    int64_t rest = block.head;
    for (size_t d = a.mask.leading.size(); d-- > 0;) {
      mask += rest % a.shape.leading[d] * a.mask.leading[d];
      rest /= a.shape.leading[d];
    }
    for (int64_t t = begin; t < end; ++t) {
      float* row = scores + (t - begin) * lanes;
      const float* from = mask + block.begin * a.mask.row + t * a.mask.column;
      for (int64_t r = 0; r < block.rows; ++r) row[r] += from[r * a.mask.row];
    }
  }
  if (!a.causal) return;
  for (int64_t t = std::max(begin, block.begin + 1); t < end; ++t) {
    float* row = scores + (t - begin) * lanes;
    std::fill(row, row + std::min(lanes, t - block.begin), -kInfinity);
  }
}

// Calls body(t, r, factor) for what dropout multiplies the probabilities of the
// columns [begin, end) by.
template <typename Body>
void ForDropoutFactors(const Attention& a, const DropoutMask& dropout,
                       const Block& block, int64_t begin, int64_t end,
                       const Body& body) {
  constexpr int64_t kBatch = DropoutMask::kBatchElements;
  alignas(64) float factors[kBatch];
  for (int64_t r = 0; r < block.rows; ++r) {
    const int64_t row =
        (block.head * a.shape.rows + block.begin + r) * a.shape.columns;
    int64_t t = begin;
    while (t < end) {
      const int64_t first = (row + t) / 4 * 4;
      dropout.Factors(first, factors);
      const int64_t last = std::min(end, first + kBatch - row);
      for (; t < last; ++t) body(t, r, factors[row + t - first]);
    }
  }
}

// Floats of scratch that a forward task needs, and where they lie.
template <typename T>
struct ForwardScratch {
  float* q;       // q'[width][lanes]
  float* y;       // y'[value_width][lanes]
  float* scores;  // [columns][lanes]
  float* rows;    // of one block of any tensor, where they must be copied

  static int64_t Floats(const Attention& a) {
    return (a.shape.width + a.shape.value_width + a.shape.columns) *
               a.block_rows +
           (kCopied<T>
                ? kKeyBlock * std::max(a.shape.width, a.shape.value_width)
                : 0);
  }
  ForwardScratch(const Attention& a, float* at)
      : q(at),
        y(q + a.shape.width * a.block_rows),
        scores(y + a.shape.value_width * a.block_rows),
        rows(scores + a.shape.columns * a.block_rows) {}
};

// Scores of the columns [begin, end), of which `k` holds the keys, masked.
void Scores(const Attention& a, const Block& block, const float* q,
            const FloatRows& k, const float* mask, int64_t begin, int64_t end,
            float* scores) {
  TileProduct(end - begin, a.block_rows, a.shape.width, {k.data, k.stride, 1},
              q, a.block_rows, scores, a.block_rows, false);
  MaskScores(a, block, mask, begin, end, scores);
}

template <typename T>
void ForwardBlock(const Attention& a, const Block& block, const T* q,
                  const T* k, const T* v, const float* mask,
                  const DropoutMask& dropout, const ForwardScratch<T>& scratch,
                  T* y, float* lse) {
  const int64_t lanes = a.block_rows;
  const int64_t q_row = a.RowStride(a.shape.width);
  const int64_t v_row = a.RowStride(a.shape.value_width);
  const FloatRows queries = AsFloats(q + block.begin * q_row, q_row, block.rows,
                                     a.shape.width, scratch.rows);
  PackTransposed(queries.data, queries.stride, block.rows, a.shape.width,
                 a.scale, lanes, scratch.q);
  alignas(64) float largest[kMostRows];
  alignas(64) float total[kMostRows] = {};
  std::fill(largest, largest + lanes, -kInfinity);
  for (int64_t t = 0; t < block.columns; t += kKeyBlock) {
    const int64_t end = std::min(block.columns, t + kKeyBlock);
    float* scores = scratch.scores + t * lanes;
    Scores(a, block, scratch.q,
           AsFloats(k + t * q_row, q_row, end - t, a.shape.width, scratch.rows),
           mask, t, end, scores);
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
    const FloatRows values = AsFloats(v + t * v_row, v_row, end - t,
                                      a.shape.value_width, scratch.rows);
    TileProduct(a.shape.value_width, lanes, end - t,
                {values.data, 1, values.stride}, p, lanes, scratch.y, lanes,
                t > 0);
  }
  for (int64_t r = 0; r < lanes; ++r) {
    largest[r] += Log(total[r]);
    total[r] = 1.0f / total[r];
  }
  StoreRows(scratch.y, lanes, block.rows, a.shape.value_width, total,
            y + block.begin * v_row, v_row, scratch.rows);
  std::copy(largest, largest + block.rows, lse + block.begin);
}

template <typename T>
PreparedKernel Forward(Attention a) {
  const int64_t tasks = a.heads() * a.row_blocks;
  a.slots = TaskSlots(tasks);
  const int64_t floats = ForwardScratch<T>::Floats(a);
  return MakeKernel(
      [a, tasks, floats](const KernelArgs& args) {
        const models::AttentionShape& s = a.shape;
        const DropoutMask dropout = a.dropout.At(*args.scalars);
        const float* mask = a.mask.present ? In(args, a.mask_input) : nullptr;
        ParallelTasks(tasks, a.slots, [&](int64_t task, int64_t slot) {
          // A causal head's last blocks are its longest: they go first.
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

PreparedKernel PrepareAttention(const Prepare& p) {
  LOADLINE_ASSIGN_OR_RETURN(const Attention a, Describe(p, 0, 3));
  return WithFloat<Bf16>(p, p.input(0).dtype,
                         [&](auto type) { return Forward<decltype(type)>(a); });
}

// Floats of scratch that a backward task needs, and where they lie.
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
  // Where rows must be copied: a block of keys, one of values, and the head's
  // dk and dv.
  float *k_rows, *v_rows, *dk, *dv;

  static int64_t Floats(const Attention& a) {
    const models::AttentionShape& s = a.shape;
    return (2 * s.width + s.value_width + RoundUp(s.width) +
            RoundUp(s.value_width) +
            (a.dropout.settings.threshold != 0 ? 3 : 2) * kKeyBlock) *
               a.block_rows +
           (kCopied<T> ? (kKeyBlock + s.columns) * (s.width + s.value_width)
                       : 0);
  }
  BackwardScratch(const Attention& a, float* at)
      : q(at),
        dy(q + a.shape.width * a.block_rows),
        dq(dy + a.shape.value_width * a.block_rows),
        q_rows(dq + a.shape.width * a.block_rows),
        dy_rows(q_rows + RoundUp(a.shape.width) * a.block_rows),
        p(dy_rows + RoundUp(a.shape.value_width) * a.block_rows),
        dp(p + kKeyBlock * a.block_rows),
        kept(a.dropout.settings.threshold != 0 ? dp + kKeyBlock * a.block_rows
                                               : p),
        k_rows((a.dropout.settings.threshold != 0 ? kept : dp) +
               kKeyBlock * a.block_rows),
        v_rows(k_rows + kKeyBlock * a.shape.width),
        dk(v_rows + kKeyBlock * a.shape.value_width),
        dv(dk + a.shape.columns * a.shape.width) {}
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
  TileProduct(end - begin, lanes, a.shape.value_width, {v.data, v.stride, 1},
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
  const models::AttentionShape& s = a.shape;
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
  // A statistic of infinity makes the probabilities of rows that are none 0.
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
  const models::AttentionShape& s = a.shape;
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
               a.mask.present ? In(args, a.mask_input) : nullptr,
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
  a.slots = TaskSlots(a.heads());
  const int64_t floats = BackwardScratch<T>::Floats(a);
  return MakeKernel(
      [a, floats](const KernelArgs& args) {
        const DropoutMask dropout = a.dropout.At(*args.scalars);
        ParallelTasks(a.heads(), a.slots, [&](int64_t head, int64_t slot) {
          BackwardHead<T>(a, head, args, dropout,
                          {a, Workspace(args) + slot * floats});
        });
      },
      a.slots * floats * static_cast<int64_t>(sizeof(float)));
}

PreparedKernel PrepareAttentionGrad(const Prepare& p) {
  LOADLINE_ASSIGN_OR_RETURN(const Attention a, Describe(p, 1, 6));
  return WithFloat<Bf16>(p, p.input(1).dtype, [&](auto type) {
    return Backward<decltype(type)>(a);
  });
}

constexpr KernelEntry kKernels[] = {{"Attention", PrepareAttention},
                                    {"AttentionGrad", PrepareAttentionGrad}};

}  // namespace

absl::Span<const KernelEntry> AttentionKernels() { return kKernels; }

}  // namespace loadline::executor::cpu
