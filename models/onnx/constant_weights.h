// Some exporters write weights as Constant nodes, also inside of loops.
#ifndef LOADLINE_MODELS_ONNX_CONSTANT_WEIGHTS_H_
#define LOADLINE_MODELS_ONNX_CONSTANT_WEIGHTS_H_

#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// Makes initializers of the model's graph of Constant nodes that hold a float
// tensor with an axis, and of the float initializers of its bodies (branches of
// an If, body of a Loop). What has the name of another tensor gets a new one.
// Leaves PyTorch's files alone, where a Constant is a number of the model's
// code, and those of IR versions whose initializers are inputs.
void MakeInitializersOfConstants(onnx::ModelProto* model);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_CONSTANT_WEIGHTS_H_
