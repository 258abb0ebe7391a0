// Time and workspace of a node: all that the planner knows of an operator.
#ifndef LOADLINE_PASSES_COST_MODEL_H_
#define LOADLINE_PASSES_COST_MODEL_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "models/graph.h"
#include "planner/problem/machine.h"

namespace loadline::passes {

struct NodeCost {
  int64_t time_ns = 0;
  int64_t workspace_bytes = 0;  // scratch while the node runs
};

using CostFunction = std::function<absl::StatusOr<NodeCost>(
    const models::Graph&, const models::Node&)>;
using WorkspaceFunction = std::function<absl::StatusOr<int64_t>(
    const models::Graph&, const models::Node&)>;

// Time from the profile: the measured one of models::OperatorKey if present,
// otherwise the roofline
//   launch_ns + max(flops / matmul rate, bytes / memory rate),
// where flops count matrix products and convolutions only. Workspace from
// `workspace_bytes`, usually the device's kernel for the node.
//
// The returned function gives FailedPrecondition, naming operator and field, if
// the profile has neither for a node.
CostFunction CostFromMachine(planner::Machine machine,
                             WorkspaceFunction workspace_bytes);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_COST_MODEL_H_
