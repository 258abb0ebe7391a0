// Regions under torch.no_grad. A file has no trace of them but one: of their
// nodes, and of those of torch.autocast, torch's newer exporter gives code that
// it generated as the source, in place of the user's file.
#ifndef LOADLINE_MODELS_ONNX_NO_GRAD_H_
#define LOADLINE_MODELS_ONNX_NO_GRAD_H_

#include <set>
#include <string>

#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// Inserts an Identity behind every value of such a region that nodes outside
// read, as detach() has it; adds the names of these to `detached`. Returns a
// warning that lists the values; empty if there are none.
std::string DetachNoGradRegions(onnx::GraphProto* graph,
                                std::set<std::string>* detached);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_NO_GRAD_H_
