// What tf2onnx changes of a Keras model's biases: it drops additions of zeros,
// and with them every bias that is still as Keras made it, and gives an LSTM a
// second one.
#ifndef LOADLINE_MODELS_ONNX_KERAS_BIASES_H_
#define LOADLINE_MODELS_ONNX_KERAS_BIASES_H_

#include <map>
#include <set>
#include <string>

#include "models/types.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// A sentence for the user if the file is tf2onnx's and has layers (MatMul,
// Gemm, Conv, ConvTranspose with an initializer as weight) without a bias;
// otherwise empty. Whether those had one, the file does not say.
std::string KerasBiasWarning(const onnx::ModelProto& model);

// The initializers, in a file of tf2onnx, that are the bias of an LSTM and have
// zeros for the bias of its state: Keras has none there, and trains none.
std::set<std::string> FindSingleBiases(
    const onnx::ModelProto& model,
    const std::map<std::string, Tensor>& initializers);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_KERAS_BIASES_H_
