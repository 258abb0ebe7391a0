// Limits what a model's functions become when they are inlined.
#ifndef LOADLINE_MODELS_ONNX_FUNCTION_SIZE_H_
#define LOADLINE_MODELS_ONNX_FUNCTION_SIZE_H_

#include "absl/status/status.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// A few functions that call each other several times are a small file and any
// number of nodes. Errors name a function: ResourceExhausted for more nodes
// than are imported, or calls nested too deeply; InvalidArgument for one that
// calls itself.
absl::Status CheckFunctions(const onnx::ModelProto& model);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_FUNCTION_SIZE_H_
