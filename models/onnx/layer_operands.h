// Which initializers are weights by their use: operands of products,
// convolutions, normalizations, embeddings and recurrent layers. A file without
// the exporter's marks says no more than this about what is trained.
#ifndef LOADLINE_MODELS_ONNX_LAYER_OPERANDS_H_
#define LOADLINE_MODELS_ONNX_LAYER_OPERANDS_H_

#include <map>
#include <string>

#include "models/types.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

enum class OperandForm {
  kInput,     // the initializer, or its elements moved, is an input of a layer
  kFollows,   // a bias or scale in an operator of its own after the layer
  kComputed,  // the layer's input is computed from it and other constants
};

// LayerOperand::op of a vector that is added to a product.
inline constexpr char kProductBias[] = "bias of a product";

// Of the vectors that multiply a product without bias and are added then, as a
// batch normalization leaves them that the exporter folded into constants.
inline constexpr char kProductScale[] = "scale of a product";
inline constexpr char kScaledProductBias[] = "bias of a scaled product";

struct LayerOperand {
  OperandForm form;  // the first of its forms in the order above
  std::string op;    // the layer: "Conv", kProductBias
};

// Whether input `i` of the node is a weight or a bias of a layer, if it is an
// initializer.
bool IsWeightInput(const onnx::NodeProto& node, int i);

// By the initializer's name. Reads operators as the file has them: ONNX's
// written-out forms of composite operators hide their weights.
//
// An operand is
//   - a weight or bias input of a layer (for MatMul, Gemm and Einsum any
//     input), also through operators that move or cast elements;
//   - the vector that is added to a product without bias, or the one number,
//     with an axis, that is added to a product with one output;
//   - the vector that multiplies a product without bias, and the one added
//   then;
//   - the scale, and the vector added after it, of a normalization that is
//     written out: x divided by the root of a reduction, or
//     InstanceNormalization without a scale of its own, as for GroupNorm;
//   - the same in the branches of an If and the body of a Loop.
std::map<std::string, LayerOperand> FindLayerOperands(
    const onnx::GraphProto& graph,
    const std::map<std::string, Tensor>& initializers);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_LAYER_OPERANDS_H_
