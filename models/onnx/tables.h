// Recognizes tensors that a model's author computed and does not train, by
// their contents: ONNX does not mark them.
#ifndef LOADLINE_MODELS_ONNX_TABLES_H_
#define LOADLINE_MODELS_ONNX_TABLES_H_

#include "models/types.h"

namespace loadline::models::onnx_internal {

// A mask: contains a non-finite element, or only zeros and numbers of at most
// -1e4 with at least one of the latter. `tensor` is f32, also below.
bool IsMask(const Tensor& tensor);

// Sines or cosines of evenly spaced angles with amplitude 1, down each column
// of the last two axes longer than one: the position tables of "Attention Is
// All You Need" (section 3.5) and of rotary embeddings (RoFormer, section 3.2).
// At least four rows. Almost constant columns are allowed if another column is
// not. Or the same of a grid's positions, line after line, each column of the
// line or of the position in it, maybe behind a row of zeros: the tables of
// images in MAE (He et al. 2022) and DiT (Peebles, Xie 2023).
bool IsSineTable(const Tensor& tensor);

// A decreasing geometric sequence that begins with 1 and has at least four
// elements: the frequencies of such tables.
bool IsFrequencies(const Tensor& tensor);

// Contents that neither a random initialization nor training leaves in a
// weight: whole numbers of at least two values; a symmetric matrix, such as a
// graph's Laplacian; the same numbers backwards, such as a window; zeros in at
// least half of the elements, such as a bank of filters; lines that are sorted
// along one axis, such as powers and schedules; an arithmetic or geometric
// sequence; or several equal filters, such as a blur. Tensors that are equal
// everywhere and identities are not: parameters often start so.
bool IsRegular(const Tensor& tensor);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_TABLES_H_
