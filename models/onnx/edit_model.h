// Changes of ONNX protobufs that the library has no functions for.
#ifndef LOADLINE_MODELS_ONNX_EDIT_MODEL_H_
#define LOADLINE_MODELS_ONNX_EDIT_MODEL_H_

#include <cstdint>
#include <set>
#include <string>

#include "models/attributes.h"
#include "models/types.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// Sets an attribute, whether or not it is there.
void SetInt(const std::string& name, int64_t value, onnx::NodeProto* node);
void SetInts(const std::string& name, const Ints& values,
             onnx::NodeProto* node);
void EraseAttribute(const std::string& name, onnx::NodeProto* node);

// Sets type, dims and contents.
void SetTensor(const Tensor& tensor, onnx::TensorProto* proto);

using Names = std::set<std::string>;

// The tensors that a node or an output of the graph reads.
Names NamesUsed(const onnx::GraphProto& graph);
// Removes nodes and initializers of which nothing is used now, and something
// was when NamesUsed gave `before`.
void DropUnused(const Names& before, onnx::GraphProto* graph);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_EDIT_MODEL_H_
