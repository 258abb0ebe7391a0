// The onnx library's check of types and shapes, with errors that name the node.
#ifndef LOADLINE_MODELS_ONNX_CHECK_SHAPES_H_
#define LOADLINE_MODELS_ONNX_CHECK_SHAPES_H_

#include "absl/status/status.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// InvalidArgument if the library's inference finds that the types and shapes of
// a node's inputs do not fit: names the first such node and what it reads.
// Otherwise the graph has the type and shape of each value that is known.
// Nodes are in order, and outputs have no shapes.
absl::Status CheckShapes(onnx::ModelProto* model);

// Adds the shapes that the library can infer, for steps that need some. Ignores
// nodes that do not fit; CheckShapes reports them.
void AddKnownShapes(onnx::ModelProto* model);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_CHECK_SHAPES_H_
