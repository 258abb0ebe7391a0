// The shape of an attention, read from its node, for inference, cost and the
// kernels of every device.
#ifndef LOADLINE_MODELS_OPS_ATTENTION_H_
#define LOADLINE_MODELS_OPS_ATTENTION_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "models/graph.h"
#include "models/types.h"

namespace loadline::models {

// `batch` times `heads` problems of `rows` queries and `columns` keys. Row r of
// head h of example b begins at element ((b * rows + r) * heads + h) * width if
// heads are interleaved, else at ((b * heads + h) * rows + r) * width.
struct AttentionShape {
  bool interleaved = false;
  std::vector<int64_t> leading;  // of the scores, before rows and columns
  int64_t batch = 1;
  int64_t heads = 1;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t width = 0;        // of a query and a key
  int64_t value_width = 0;  // of a value and an output

  std::vector<int64_t> ScoreDims() const;      // leading, rows, columns
  std::vector<int64_t> StatisticDims() const;  // leading, rows
  // Number of scores that causal masking leaves.
  double VisibleScores(bool causal) const;
};

// InvalidArgument if the three shapes do not match.
absl::StatusOr<AttentionShape> AttentionShapeOf(const Node& node,
                                                const TensorType& q,
                                                const TensorType& k,
                                                const TensorType& v);

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_OPS_ATTENTION_H_
