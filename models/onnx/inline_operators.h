// Operators as the functions that ONNX defines them by.
#ifndef LOADLINE_MODELS_ONNX_INLINE_OPERATORS_H_
#define LOADLINE_MODELS_ONNX_INLINE_OPERATORS_H_

#include <string>
#include <vector>

#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// The model's opset of the default domain; 0: it names none.
int DefaultOpset(const onnx::ModelProto& proto);

// By QualifiedName.
bool ContainsOperator(const onnx::ModelProto& proto,
                      const std::vector<std::string>& operators);

// Replaces calls of the operators by their bodies. May throw, as the onnx
// library does.
void InlineOperators(const std::vector<std::string>& operators,
                     onnx::ModelProto* proto);

// Writes out the attributes that calls leave to the model's own functions.
void WriteFunctionDefaults(onnx::ModelProto* model);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_INLINE_OPERATORS_H_
