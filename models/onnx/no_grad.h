// Regions under torch.no_grad, in files of torch's newer exporter.
#ifndef LOADLINE_MODELS_ONNX_NO_GRAD_H_
#define LOADLINE_MODELS_ONNX_NO_GRAD_H_

#include <string>
#include <vector>

#include "models/onnx/export_marks.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// Inserts an Identity behind every value of such a region that nodes outside
// read, as detach() has it; adds the names of these to `marks`. Returns
// warnings that list the values, and those of regions that may be of
// torch.autocast.
std::vector<std::string> DetachNoGradRegions(onnx::GraphProto* graph,
                                             ExportMarks* marks);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_NO_GRAD_H_
