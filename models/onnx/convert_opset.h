// Which conversions between opsets can be skipped, and how; and operators that
// the onnx library converts to others than they were.
#ifndef LOADLINE_MODELS_ONNX_CONVERT_OPSET_H_
#define LOADLINE_MODELS_ONNX_CONVERT_OPSET_H_

#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// Whether the onnx library's conversion from one opset of the default domain to
// a newer one leaves every node of the graph as it is.
bool ConversionKeepsNodes(const onnx::GraphProto& graph, int from, int to);

// Sets the version of the default domain.
void SetOpset(int opset, onnx::ModelProto* proto);

// Before opset 14, BatchNormalization is in training form where it has further
// outputs. Gives such nodes training_mode, and takes away their outputs 3 and
// 4, which the library's conversion refuses, where nothing reads them.
void SetTrainingMode(onnx::GraphProto* graph);

// Whether an operator that the library's conversion from this opset would give
// another meaning has a form of opset 13 or later with its own: Pad whose pads
// are an attribute, Upsample, and Resize with asymmetric coordinates. They are
// those of ONNX Runtime; a Resize to fewer elements by the nearest has none.
bool HasNewForm(const onnx::NodeProto& node, const onnx::GraphProto& graph,
                int opset);

// Gives such nodes that form, and a domain of their own, so that a conversion
// leaves them as they are, until ShowOldOperators gives them the default one.
void HideOldOperators(int opset, onnx::ModelProto* proto);
void ShowOldOperators(onnx::ModelProto* proto);

// The onnx library's conversion of the whole model. Throws what the library
// throws.
void ConvertNodes(int opset, onnx::ModelProto* proto);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_CONVERT_OPSET_H_
