// What the rules for Loop and Scan share: their bodies are imported once for
// each step, and tensors are taken apart and put together along an axis.
#ifndef LOADLINE_MODELS_ONNX_UNROLLED_BODY_H_
#define LOADLINE_MODELS_ONNX_UNROLLED_BODY_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "models/onnx/importer.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// Steps above which a Loop or a Scan is not written out.
inline constexpr int64_t kMostBodySteps = int64_t{1} << 16;

// The graph in the attribute. InvalidArgument if there is none.
absl::StatusOr<const onnx::GraphProto*> BodyOf(const onnx::NodeProto& node,
                                               const char* attribute);

// Tensors of one shape, at least one, along a new axis of the result.
absl::StatusOr<Binding> StackBindings(Importer& importer,
                                      const onnx::NodeProto& node,
                                      std::vector<Binding> parts, int64_t axis);

// The tensor at each position of the axis, which has `count`, at least one.
absl::StatusOr<std::vector<Binding>> UnstackBinding(Importer& importer,
                                                    const onnx::NodeProto& node,
                                                    Binding whole, int64_t axis,
                                                    int64_t count);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_UNROLLED_BODY_H_
