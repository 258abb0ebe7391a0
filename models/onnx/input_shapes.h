// Determines whole shapes of graph inputs from the file and the user's options.
#ifndef LOADLINE_MODELS_ONNX_INPUT_SHAPES_H_
#define LOADLINE_MODELS_ONNX_INPUT_SHAPES_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/onnx/declared_inputs.h"
#include "models/onnx/import.h"
#include "models/types.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// The input's type with every axis known: fixed axes as in the file, open ones
// from `options.input_shapes`, else `options.dims` by the axis' name, else
// (first axis only) the batch. InvalidArgument lists the missing ones.
absl::StatusOr<TensorType> ResolveInput(const onnx::ValueInfoProto& input,
                                        const ImportOptions& options,
                                        std::vector<std::string>* warnings);

// The same input as the file declares it.
DeclaredInput Declared(const onnx::ValueInfoProto& input);

// The inputs that no output depends on, and that need neither a shape nor data;
// none where that is all of them.
std::set<std::string> UnreadInputs(const onnx::GraphProto& graph);

// Writes `type` into the proto's type.
void SetType(const TensorType& type, onnx::ValueInfoProto* info);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_INPUT_SHAPES_H_
