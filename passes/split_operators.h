// Runs chains of operators in segments. A chain is a connected part of a
// training step that is large in the middle and small at its ends. All its
// large values have the same number of rows, and its operators compute each row
// by itself or add up over rows. In s segments of rows the
// large values exist only in s-ths:
//
//   logits = MatMul(x, w)                      for each segment i of rows:
//   loss, lse = SoftmaxCrossEntropy(logits, t)   logits_i = MatMul(x_i, w)
//   dlogits = SoftmaxCrossEntropyGrad(...)   =>  lse_i, hit_i = ...(logits_i)
//   dx = MatMul(dlogits, w')                     dlogits_i = ...
//   dw = MatMul(x', dlogits)                     dx_i = MatMul(dlogits_i, w')
//                                                dw = x_i' dlogits_i + dw
//
// Segments read slices in place (RowsView). Rows of results are joined, and
// sums over rows are added in the order of the segments, in f32. The pass runs
// on the whole step, after gradients, optimizer and fusions, and before
// mask_relu_gradient, whose packed masks have no rows.
#ifndef LOADLINE_PASSES_SPLIT_OPERATORS_H_
#define LOADLINE_PASSES_SPLIT_OPERATORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "models/graph.h"

namespace loadline::passes {

struct SplittableChain {
  // Unique in the step, and the same for every step built from one model:
  // "head", "mlp.0", "mlp.1", ..., "attention.0", ..., "conv.0", ...
  std::string name;
  std::string kind;           // name without the number: "head", "mlp", ...
  std::string largest;        // name of the largest value inside
  int64_t largest_bytes = 0;  // its bytes: it never exists whole when split
  int64_t rows = 0;           // what is cut, and so the most segments
  int64_t end_bytes = 0;      // rows of values that enter and leave the chain
};

// Every chain of a training step, the ones with the most bytes first. No two
// share a node.
std::vector<SplittableChain> FindSplittableChains(const models::Graph& step);

struct Split {
  std::string chain;  // a name, or a kind for all chains of that kind
  int64_t segments = 1;
};

// "NAME=N". InvalidArgument: not of this form, or N < 1.
absl::StatusOr<Split> ParseSplit(absl::string_view text);

// Rewrites the named chains; one segment changes nothing, and a name counts
// more than its kind. InvalidArgument: no such chain (lists those that there
// are), named twice, fewer rows than segments.
absl::Status SplitOperators(models::Graph& step,
                            absl::Span<const Split> splits);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_SPLIT_OPERATORS_H_
