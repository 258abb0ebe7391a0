// Parameters that the newer exporter of torch has cut into parts which share
// elements.
#ifndef LOADLINE_MODELS_ONNX_OVERLAPPING_PARTS_H_
#define LOADLINE_MODELS_ONNX_OVERLAPPING_PARTS_H_

#include <string>
#include <vector>

#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// A warning for each parameter of which two initializers
// are parts, such as w[0:3] and w[1:4], that have some of its elements both.
// Training moves these apart. Where all elements are equal, as in new biases,
// contents do not show it.
std::vector<std::string> FindOverlaps(const onnx::ModelProto& model,
                                      const std::string& folder);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_OVERLAPPING_PARTS_H_
