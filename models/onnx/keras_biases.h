// What tf2onnx changes of a Keras model's biases: it drops additions of zeros,
// and with them every bias that is still as Keras made it, and gives an LSTM
// two.
#ifndef LOADLINE_MODELS_ONNX_KERAS_BIASES_H_
#define LOADLINE_MODELS_ONNX_KERAS_BIASES_H_

#include <string>
#include <vector>

#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// Sentences for the user if the file is tf2onnx's and has layers (MatMul, Gemm,
// Conv, ConvTranspose with an initializer as weight) without a bias, or an LSTM
// with one. Whether layers without a bias had one, the file does not say.
std::vector<std::string> KerasBiasWarnings(const onnx::ModelProto& model);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_KERAS_BIASES_H_
