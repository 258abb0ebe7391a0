// Computes layouts from attributes and shapes. Tested through the attention
// kernels in tests/conformance/.
#include "executor/ops/attention_layout.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "executor/ops/loop_nest.h"
#include "models/ops/attention.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {

absl::StatusOr<AttentionLayout> MakeAttentionLayout(const Prepare& p, int first,
                                                    int mask_input) {
  LOADLINE_ASSIGN_OR_RETURN(
      const models::AttentionShape shape,
      models::AttentionShapeOf(p.node(), p.input(first), p.input(first + 1),
                               p.input(first + 2)));
  AttentionLayout a;
  a.heads = shape.batch * shape.heads;
  a.rows = shape.rows;
  a.columns = shape.columns;
  a.width = shape.width;
  a.value_width = shape.value_width;
  a.interleave = shape.interleaved ? shape.heads : 1;
  a.scale = static_cast<float>(p.attributes().Float("scale", 1));
  a.causal = p.attributes().Int("causal", 0) != 0;
  LOADLINE_ASSIGN_OR_RETURN(a.dropout, MakeDropoutSettings(p, 0));
  a.masked = p.has_input(mask_input);
  if (!a.masked) return a;
  if (p.input(mask_input).dtype != DType::kF32) {
    return p.Unsupported(p.input(mask_input).dtype);
  }
  if (shape.leading.size() > AttentionLayout::kMostLeading) {
    return absl::UnimplementedError(
        absl::StrCat("a masked attention of ", shape.leading.size() + 2,
                     " dimensions (node ", p.node().name, ")"));
  }
  const Ints strides =
      BroadcastStrides(p.input(mask_input).dims, shape.ScoreDims());
  a.leading = static_cast<int>(shape.leading.size());
  std::copy(shape.leading.begin(), shape.leading.end(), a.leading_dims);
  std::copy(strides.begin(), strides.end() - 2, a.mask_leading);
  a.mask_row = strides[strides.size() - 2];
  a.mask_column = strides.back();
  return a;
}

}  // namespace loadline::executor
