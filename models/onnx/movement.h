// Movements of elements that several rules are made of.
#ifndef LOADLINE_MODELS_ONNX_MOVEMENT_H_
#define LOADLINE_MODELS_ONNX_MOVEMENT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "models/onnx/importer.h"

namespace loadline::models::onnx_internal {

// Elements of one axis, and of one constant, that a rule makes: beyond it
// nobody means it.
inline constexpr int64_t kMaxAxis = int64_t{1} << 20;
inline constexpr int64_t kMaxConstant = int64_t{1} << 22;

// Elements of x at constant positions along an axis.
absl::StatusOr<ValueId> EmitTake(Importer& importer,
                                 const onnx::NodeProto& node, ValueId x,
                                 int64_t axis, const Ints& positions);

// x as `apart`, which has an axis of 1 for each that repeats, broadcast to
// `wide`, as `result`.
absl::StatusOr<ValueId> EmitRepeat(Importer& importer,
                                   const onnx::NodeProto& node, ValueId x,
                                   const Ints& apart, const Ints& wide,
                                   const Ints& result);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_MOVEMENT_H_
