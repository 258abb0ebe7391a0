// Attention without storing the matrix of probabilities. A block of up to 64
// queries is spread over the lanes of vectors, and the loop runs over keys, so
// that maxima, sums and statistics of rows are plain vectors:
//
//   scores'[t][r] = k[t] . (scale q[r])     p' = exp(scores' - max)
//   y'[e][r] = sum_t v[t][e] p'[t][r] / sum_t p'[t][r]
//
// Backward takes keys in blocks of 64 too and stores no full row: the saved
// statistic gives p again. Columns that no row of a causal block may see are
// skipped.
//
// Forward, a task is a block of rows. Backward, a task is a head, whose blocks
// add to dk and dv in order. So results do not depend on the number of threads.
//
// In bf16, rows are converted to float when they are copied to scratch, and dk
// and dv are float until the head is finished.
//
// attention_forward.cc and attention_backward.cc are the two kernels; this file
// has what both need. Tested in tests/conformance/.
#include "executor/cpu/attention.h"

#include "executor/cpu/families.h"
#include "executor/cpu/tile_product.h"
#include "executor/cpu/transpose_lanes.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cpu::attention {
namespace {

// Adds the mask to scores'[t][r] of the columns [begin, end), and minus
// infinity where causal attention hides the column from the row.
void MaskScores(const Attention& a, const Block& block, const float* mask,
                int64_t begin, int64_t end, float* scores) {
  const int64_t lanes = a.block_rows;
  if (a.masked) {
    mask += a.MaskStart(block.head) + block.begin * a.mask_row;
    for (int64_t t = begin; t < end; ++t) {
      float* row = scores + (t - begin) * lanes;
      const float* from = mask + t * a.mask_column;
      for (int64_t r = 0; r < block.rows; ++r) row[r] += from[r * a.mask_row];
    }
  }
  if (!a.causal) return;
  for (int64_t t = std::max(begin, block.begin + 1); t < end; ++t) {
    float* row = scores + (t - begin) * lanes;
    std::fill(row, row + std::min(lanes, t - block.begin), -kInfinity);
  }
}

}  // namespace

absl::StatusOr<Attention> Describe(const Prepare& p, int first,
                                   int mask_input) {
  LOADLINE_ASSIGN_OR_RETURN(const AttentionLayout layout,
                            MakeAttentionLayout(p, first, mask_input));
  Attention a = {layout};
  a.mask_input = mask_input;
  a.block_rows = std::min(kMostRows, RoundUp(a.rows));
  a.row_blocks = (a.rows + a.block_rows - 1) / a.block_rows;
  return a;
}

void PackTransposed(const float* rows, int64_t stride, int64_t count,
                    int64_t width, float factor, int64_t lanes, float* to) {
  TransposeBlock(rows, stride, count, width, to, lanes,
                 [factor](int64_t) { return factor; });
  for (int64_t d = 0; count < lanes && d < width; ++d) {
    std::fill(to + d * lanes + count, to + (d + 1) * lanes, 0.0f);
  }
}

void StoreTransposed(const float* from, int64_t lanes, int64_t count,
                     int64_t width, const float* factor, float* rows,
                     int64_t stride) {
  TransposeBlock(from, lanes, width, count, rows, stride,
                 [factor](int64_t r) { return factor[r]; });
}

void Scores(const Attention& a, const Block& block, const float* q,
            const FloatRows& k, const float* mask, int64_t begin, int64_t end,
            float* scores) {
  TileProduct(end - begin, a.block_rows, a.width, {k.data, k.stride, 1}, q,
              a.block_rows, scores, a.block_rows, false);
  MaskScores(a, block, mask, begin, end, scores);
}

}  // namespace loadline::executor::cpu::attention

namespace loadline::executor::cpu {
namespace {

constexpr KernelEntry kAttentionKernels[] = {
    {"Attention", attention::PrepareForward},
    {"AttentionGrad", attention::PrepareBackward},
};

}  // namespace

absl::Span<const KernelEntry> AttentionKernels() { return kAttentionKernels; }

}  // namespace loadline::executor::cpu
