// Divides the cross entropy into what is computed for each target by itself and
// a sum over all targets, so that its rows can be split.
//
//   loss, lse = SoftmaxCrossEntropy(x, t)
//   dx = SoftmaxCrossEntropyGrad(dloss, x, t, lse)
// becomes
//   n = CountTargets(t)
//   lse, hit = CrossEntropyRows(x, t)
//   loss = CrossEntropyMean(lse, hit, t)
//   dx = SoftmaxCrossEntropyGrad(dloss, x, t, lse, n)
#ifndef LOADLINE_PASSES_CROSS_ENTROPY_ROWS_H_
#define LOADLINE_PASSES_CROSS_ENTROPY_ROWS_H_

#include "absl/status/status.h"
#include "models/graph.h"

namespace loadline::passes {

// All values keep their ids and bits; new ones come after them.
absl::Status DivideCrossEntropy(models::Graph& graph);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_CROSS_ENTROPY_ROWS_H_
