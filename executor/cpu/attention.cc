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
// floats until the head is done.
//
// attention_forward.cc and attention_backward.cc are the two kernels; here
// stands what both need. Tested in tests/conformance/.
#include "executor/cpu/attention.h"

#include "executor/cpu/families.h"
#include "executor/cpu/tile_product.h"
#include "executor/cpu/transpose_lanes.h"
#include "executor/loop_nest.h"
#include "planner/status_macros.h"

namespace loadline::executor::cpu::attention {
namespace {

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

}  // namespace

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
  TileProduct(end - begin, a.block_rows, a.shape.width, {k.data, k.stride, 1},
              q, a.block_rows, scores, a.block_rows, false);
  MaskScores(a, block, mask, begin, end, scores);
}

}  // namespace loadline::executor::cpu::attention

namespace loadline::executor::cpu {
namespace {

constexpr KernelEntry kKernels[] = {
    {"Attention", attention::PrepareForward},
    {"AttentionGrad", attention::PrepareBackward},
};

}  // namespace

absl::Span<const KernelEntry> AttentionKernels() { return kKernels; }

}  // namespace loadline::executor::cpu
