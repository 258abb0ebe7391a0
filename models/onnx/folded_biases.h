// tf2onnx drops an addition of zeros, and with it every bias that is still as
// Keras made it.
#ifndef LOADLINE_MODELS_ONNX_FOLDED_BIASES_H_
#define LOADLINE_MODELS_ONNX_FOLDED_BIASES_H_

#include <string>

#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// A sentence for the user if the file is tf2onnx's and has layers (MatMul,
// Gemm, Conv, ConvTranspose with an initializer as weight) without a bias;
// otherwise empty. Whether those had one, the file does not say.
std::string FoldedBiasesWarning(const onnx::ModelProto& model);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_FOLDED_BIASES_H_
