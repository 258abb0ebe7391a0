// Which single weights, or small patterns of weights, are masked.
#ifndef LOADLINE_PASSES_COMPRESS_CHOOSE_WEIGHTS_H_
#define LOADLINE_PASSES_COMPRESS_CHOOSE_WEIGHTS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "models/types.h"
#include "passes/compress/recipe.h"

namespace loadline::passes {

// The mask, of ones and zeros, of a weight at a sparsity. The weight is read as
// a matrix of its first axis by all others. Units of elements with the lowest
// sums of `scores` are masked, ties by position, until the nearest number to
// the share is reached:
//   unstructured  single elements
//   block2x4      two rows by four columns
//   2:4           the two lowest of four neighbours along `reduced_axis`; at
//                 0.5 of each four
// Rows, columns and indices that fill no whole unit are not masked; block2x4
// takes as many more of the others. What `before` masks stays masked.
std::vector<float> ChooseWeights(const models::TensorType& type,
                                 PruneGranularity granularity,
                                 int64_t reduced_axis, double sparsity,
                                 absl::Span<const float> scores,
                                 absl::Span<const float> before);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_COMPRESS_CHOOSE_WEIGHTS_H_
