// What is checked of a file before the onnx library interprets it.
#ifndef LOADLINE_MODELS_ONNX_CHECK_OUTLINE_H_
#define LOADLINE_MODELS_ONNX_CHECK_OUTLINE_H_

#include "absl/status/status.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

inline constexpr int kMaxNodes = 1 << 18;

// InvalidArgument for a name that is too long, no UTF-8, or has control
// characters.
absl::Status CheckNames(const onnx::GraphProto& graph);

// ResourceExhausted for more nodes.
absl::Status CheckNodes(const onnx::GraphProto& graph, int most = kMaxNodes);

// InvalidArgument for a file without outputs, with two outputs of one name, or
// with sparse initializers; and the errors of its names, nodes and functions.
absl::Status CheckOutline(const onnx::ModelProto& proto);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_CHECK_OUTLINE_H_
