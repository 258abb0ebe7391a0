// Straight-through estimators (Bengio, Leonard and Courville 2013) in files
// that have lost detach(), as those of torch's older exporter.
#ifndef LOADLINE_MODELS_ONNX_STRAIGHT_THROUGH_H_
#define LOADLINE_MODELS_ONNX_STRAIGHT_THROUGH_H_

#include <string>

#include "models/onnx/export_marks.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// `x + (q - x)`, `x - (x - q)` and `q + x - x` are q. Where q passes no
// gradient to x, as round(x) or a row of a table, x would get none at all, and
// they are only written to give it the gradient of q. Inserts an Identity where
// detach() was; adds its name to `marks`. Returns a warning that lists the
// results; "" if there are none, or if the file has a detach() elsewhere.
std::string DetachStraightThrough(onnx::GraphProto* graph, ExportMarks* marks);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_STRAIGHT_THROUGH_H_
