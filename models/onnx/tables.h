// Numbers that a model's author computed once and never trains, told by their
// contents: ONNX has no mark for them.
#ifndef LOADLINE_MODELS_ONNX_TABLES_H_
#define LOADLINE_MODELS_ONNX_TABLES_H_

#include "models/types.h"

namespace loadline::models::onnx_internal {

// A mask: a non-finite element, or nothing but zeros and numbers of at most
// -1e4, at least one of them. `tensor` is f32, as below.
bool IsMask(const Tensor& tensor);

// Sines or cosines of evenly spaced angles down each column of the last two
// axes that are longer than one, of an amplitude of one: the position tables of
// "Attention Is All You Need" (section 3.5) and of rotary embeddings (RoFormer,
// section 3.2). At least four rows; columns that hardly turn are allowed beside
// one that does.
bool IsSineTable(const Tensor& tensor);

// A falling geometric sequence from one, of at least four elements in all: the
// frequencies that such tables are made of.
bool IsFrequencies(const Tensor& tensor);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_TABLES_H_
