// A graph of one node, to prepare another operator's kernel as part of a
// kernel.
#ifndef LOADLINE_EXECUTOR_OPS_ONE_NODE_H_
#define LOADLINE_EXECUTOR_OPS_ONE_NODE_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "executor/ops/prepare.h"

namespace loadline::executor {

// The node is not in graph.nodes: prepare functions get it separately.
struct OneNode {
  models::Graph graph;
  models::Node node;
};

// `op` from inputs of these types to one output, named after the node that it
// is a part of.
OneNode MakeOneNode(const Prepare& whole, absl::string_view op,
                    const std::vector<TensorType>& inputs,
                    const TensorType& output, models::Attributes attributes);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_OPS_ONE_NODE_H_
