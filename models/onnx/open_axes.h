// Which axes of a model's tensors have one size in every run.
#ifndef LOADLINE_MODELS_ONNX_OPEN_AXES_H_
#define LOADLINE_MODELS_ONNX_OPEN_AXES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// By name of a tensor, the sizes of its axes; -1: open or unknown.
using FixedSizes = std::map<std::string, std::vector<int64_t>>;

// Of each tensor whose rank the onnx library infers. InvalidArgument if
// inference fails.
absl::StatusOr<FixedSizes> InferFixedSizes(const onnx::ModelProto& model);

// What an element of a shape is.
enum class ShapeElement {
  kFixed,     // the same number in every run
  kOpen,      // depends on an open axis
  kInferred,  // -1: Reshape finds it
  kCopied,    // 0: Reshape copies it
};

// The elements of a shape that the graph computes. None: that cannot be told.
std::optional<std::vector<ShapeElement>> ElementsOfShape(
    const onnx::GraphProto& graph, const FixedSizes& sizes,
    const std::string& shape);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_OPEN_AXES_H_
