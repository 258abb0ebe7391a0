// Torch's older exporter transposes the weight of a Linear layer beforehand. If
// the weight is tied, such as that of a language model's head with its table of
// embeddings, the file has it twice then, and training would move the two
// apart.
#ifndef LOADLINE_MODELS_ONNX_TIED_COPIES_H_
#define LOADLINE_MODELS_ONNX_TIED_COPIES_H_

#include <string>
#include <vector>

#include "models/types.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// Both are initializers; `copy` is `original` transposed.
struct TiedCopy {
  std::string copy, original;
};

// Copies under names that this exporter invents (onnx::MatMul_12) of matrices
// that the file has under the module's own names. Matrices of few elements, or
// of one value, are equal by chance and left alone. None in other files, nor
// where contents cannot be read, which is another function's error.
std::vector<TiedCopy> FindTiedCopies(const onnx::ModelProto& model,
                                     const std::string& folder);

// Makes a node of each copy, which transposes the original.
void TieCopies(const std::vector<TiedCopy>& copies, onnx::GraphProto* graph);

Tensor Transposed(const Tensor& matrix);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_TIED_COPIES_H_
