// Which values of a graph a gradient can reach. For classify.cc.
#ifndef LOADLINE_MODELS_ONNX_GRADIENT_FLOW_H_
#define LOADLINE_MODELS_ONNX_GRADIENT_FLOW_H_

#include <set>
#include <string>

#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// Names of the values whose gradient with respect to the graph's outputs can
// differ from zero. Values that only feed comparisons, conditions, shapes or
// indices, or `detached` values, are not among them.
std::set<std::string> ReachedByGradient(const onnx::GraphProto& graph,
                                        const std::set<std::string>& detached);
// The same of the values `of`, which are among them, through the nodes from
// `first` to `last`.
std::set<std::string> ReachedByGradient(const onnx::GraphProto& graph,
                                        std::set<std::string> of,
                                        const std::set<std::string>& detached,
                                        int first, int last);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_GRADIENT_FLOW_H_
