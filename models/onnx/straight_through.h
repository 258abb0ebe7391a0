// Straight-through estimators (Bengio, Leonard and Courville 2013) in files
// that have lost detach(), as those of torch's older exporter.
#ifndef LOADLINE_MODELS_ONNX_STRAIGHT_THROUGH_H_
#define LOADLINE_MODELS_ONNX_STRAIGHT_THROUGH_H_

#include <string>

#include "models/onnx/export_marks.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// `x + (q - x)`, `x - (x - q)` and `q + x - x` are q, and only written to give
// x the gradient of q. Inserts an Identity where detach() was; adds its name to
// `marks`. Returns a warning that lists the results; "" if there are none, or
// if the file has a detach() elsewhere.
std::string DetachStraightThrough(onnx::GraphProto* graph, ExportMarks* marks);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_STRAIGHT_THROUGH_H_
