// Building blocks of rules that move elements.
#ifndef LOADLINE_MODELS_ONNX_MOVEMENT_H_
#define LOADLINE_MODELS_ONNX_MOVEMENT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "models/onnx/importer.h"

namespace loadline::models::onnx_internal {

// Limit on the elements of an axis, and of a constant, that a rule creates; no
// sensible model exceeds it.
inline constexpr int64_t kMaxAxis = int64_t{1} << 20;
inline constexpr int64_t kMaxConstant = int64_t{1} << 22;

// The numbers 0, 1, ... along `axis` of a tensor of this rank; i64.
Tensor AxisPositions(int64_t count, size_t rank, size_t axis);

// Takes elements of x at constant positions along an axis.
absl::StatusOr<ValueId> EmitTake(Importer& importer,
                                 const onnx::NodeProto& node, ValueId x,
                                 int64_t axis, const Ints& positions);

// Reshapes x to `apart`, which has an axis of 1 for each repetition, broadcasts
// it to `wide` and reshapes that to `result`.
absl::StatusOr<ValueId> EmitRepeat(Importer& importer,
                                   const onnx::NodeProto& node, ValueId x,
                                   const Ints& apart, const Ints& wide,
                                   const Ints& result);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_MOVEMENT_H_
