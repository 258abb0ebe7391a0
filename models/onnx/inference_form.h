// What a model exported for training needs to become one for inference.
#ifndef LOADLINE_MODELS_ONNX_INFERENCE_FORM_H_
#define LOADLINE_MODELS_ONNX_INFERENCE_FORM_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// BatchNormalization uses its running statistics; Dropout becomes Identity,
// or stays in inference form where its mask is read.
void UseInferenceForm(onnx::GraphProto* graph);

// A normalization behind a Conv, as one factor and one shift for each channel:
// y = conv factor + shift.
struct FoldedNorm {
  std::vector<double> factors, shifts;
};

// Removes each BatchNormalization that alone reads a Conv whose weight is named
// in `weights` and read by nothing else, and names the Conv's output as its
// own. Returns the norms by the name of the Conv's weight. Requires inference
// form. InvalidArgument: a malformed initializer.
absl::StatusOr<std::map<std::string, FoldedNorm>> FoldNorms(
    const std::vector<std::string>& weights, onnx::GraphProto* graph);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_INFERENCE_FORM_H_
