// Writes .onnx files.
#ifndef LOADLINE_MODELS_ONNX_WRITE_MODEL_H_
#define LOADLINE_MODELS_ONNX_WRITE_MODEL_H_

#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

inline constexpr int64_t kMaxFileBytes = std::numeric_limits<int32_t>::max();

// Writes to a temporary file, syncs and renames it, without a second copy of
// the model in memory. InvalidArgument above kMaxFileBytes, which protobuf
// allows; else the errors of planner::AtomicFile.
absl::Status WriteModel(const onnx::ModelProto& model, const std::string& path);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_WRITE_MODEL_H_
