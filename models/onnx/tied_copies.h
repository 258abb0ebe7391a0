// Torch's exporters transpose the weight of a Linear layer beforehand: the
// older one if it folds constants, the newer one if it optimizes. If the weight
// is tied, such as that of a language model's head with its table of
// embeddings, or its layer runs several times, the file has it more than once
// then, and training would move these apart.
#ifndef LOADLINE_MODELS_ONNX_TIED_COPIES_H_
#define LOADLINE_MODELS_ONNX_TIED_COPIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "models/types.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// Two initializers with the same elements.
struct TiedCopy {
  std::string copy, original;
  std::vector<int64_t> dims;  // of the copy
  // As matrices, without axes of one element. Otherwise the elements have the
  // same order.
  bool transposed = true;
  // By contents only; the newer exporter says what it computed from what.
  bool guessed = true;
};

// Of the older exporter: copies under names that it invents (onnx::MatMul_12)
// of matrices that the file has under the module's own names. Matrices of few
// elements, or of one value, are equal by chance and left alone.
// Of the newer exporter: copies of one parameter (computed_parameters.h) under
// the parameter's name, or the first of its copies where that is gone. Where
// contents do not show whether one is transposed, it is left alone.
// None in other files, nor where contents cannot be read, which is another
// function's error.
std::vector<TiedCopy> FindTiedCopies(const onnx::ModelProto& model,
                                     const std::string& folder);

// Makes nodes of each copy, which compute it from the original.
void TieCopies(const std::vector<TiedCopy>& copies, onnx::GraphProto* graph);

// The copy of what the original is now.
Tensor CopyOf(const Tensor& original, const TiedCopy& tied);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_TIED_COPIES_H_
