// Memory layout of an attention's operands, shared by all devices.
#ifndef LOADLINE_EXECUTOR_OPS_ATTENTION_LAYOUT_H_
#define LOADLINE_EXECUTOR_OPS_ATTENTION_LAYOUT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "executor/ops/operator_shapes.h"
#include "executor/ops/prepare.h"
#include "models/host_device.h"

namespace loadline::executor {

// `heads` independent problems of `rows` queries and `columns` keys each; see
// models::AttentionShape. Plain data: kernels take it by value.
struct AttentionLayout {
  static constexpr int kMostLeading = 6;

  int64_t heads = 1;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t width = 0;        // of a query and a key
  int64_t value_width = 0;  // of a value and an output
  int64_t interleave = 1;   // heads between two rows of one head
  float scale = 1;
  bool causal = false;
  DropoutSettings dropout = {};  // over [heads, rows, columns]
  // An additive f32 mask, broadcast to [leading..., rows, columns].
  bool masked = false;
  int leading = 0;
  int64_t leading_dims[kMostLeading] = {};
  int64_t mask_leading[kMostLeading] = {};
  int64_t mask_row = 0;
  int64_t mask_column = 0;

  // Elements from one row of a head to the next; `of_width`: the row's width.
  LOADLINE_HOST_DEVICE int64_t RowStride(int64_t of_width) const {
    return interleave * of_width;
  }
  // Offset of a head's first element, where each head has `of_rows` rows.
  LOADLINE_HOST_DEVICE int64_t HeadStart(int64_t head, int64_t of_rows,
                                         int64_t of_width) const {
    return (head / interleave * of_rows * interleave + head % interleave) *
           of_width;
  }
  // Number of columns that rows before `end_row` may attend to.
  LOADLINE_HOST_DEVICE int64_t VisibleColumns(int64_t end_row) const {
    return causal && end_row < columns ? end_row : columns;
  }
  LOADLINE_HOST_DEVICE int64_t MaskStart(int64_t head) const {
    int64_t start = 0;
    for (int d = leading; d-- > 0;) {
      start += head % leading_dims[d] * mask_leading[d];
      head /= leading_dims[d];
    }
    return start;
  }
};

// Layout of an Attention or AttentionGrad whose q is input `first`.
// Unimplemented: more than kMostLeading leading dimensions. InvalidArgument:
// shapes or attributes that do not match.
absl::StatusOr<AttentionLayout> MakeAttentionLayout(const Prepare& p, int first,
                                                    int mask_input);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_OPS_ATTENTION_LAYOUT_H_
