// The window attributes that convolutions and pools share.
#ifndef LOADLINE_MODELS_ONNX_WINDOW_H_
#define LOADLINE_MODELS_ONNX_WINDOW_H_

#include "absl/status/statusor.h"
#include "models/attributes.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// `kernel_shape`, `strides`, `pads` (with auto_pad resolved) and `dilations`
// for an input of shape `dims` (N, C, spatial...). `kernel` is used if the node
// has no kernel_shape.
absl::StatusOr<Attributes> WindowAttributes(const onnx::NodeProto& node,
                                            const Ints& dims,
                                            const Ints& kernel);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_WINDOW_H_
