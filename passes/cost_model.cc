// Roofline: Williams, Waterman, Patterson, "Roofline: an insightful visual
// performance model", CACM 52(4), 2009. Tested in
// tests/passes/cost_model_test.cc.
#include "passes/cost_model.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/ops/operator.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::Node;

absl::Status NoEstimate(const planner::Machine& machine, const Node& node,
                        absl::string_view missing) {
  return absl::FailedPreconditionError(absl::StrCat(
      "machine profile '", machine.name, "' has no measured time for ", node.op,
      " '", node.name, "' and no ", missing, " to estimate it from"));
}

absl::StatusOr<int64_t> Roofline(const planner::Machine& machine,
                                 const Graph& graph, const Node& node) {
  if (!machine.rates.has_value()) return NoEstimate(machine, node, "rates");
  const planner::Rates& rates = *machine.rates;
  if (!(rates.memory_bytes_per_s > 0)) {
    return NoEstimate(machine, node, "rates.memory_bytes_per_s");
  }
  const models::OperatorCost cost = models::CostOf(graph, node);
  double seconds = static_cast<double>(cost.bytes) / rates.memory_bytes_per_s;
  if (cost.matmul_like) {
    const std::string dtype(
        models::DTypeName(graph.value(node.inputs[0]).type.dtype));
    auto rate = rates.matmul_flop_per_s.find(dtype);
    // A profile without a rate for bf16 is assumed to be as fast as in f32.
    if (rate == rates.matmul_flop_per_s.end() && dtype == "bf16") {
      rate = rates.matmul_flop_per_s.find("f32");
    }
    if (rate == rates.matmul_flop_per_s.end() || !(rate->second > 0)) {
      return NoEstimate(machine, node,
                        absl::StrCat("rates.matmul_flop_per_s.", dtype));
    }
    seconds = std::max(seconds, cost.flops / rate->second);
  }
  return rates.launch_ns + std::llround(seconds * 1e9);
}

}  // namespace

CostFunction CostFromMachine(planner::Machine machine,
                             WorkspaceFunction workspace_bytes) {
  return [machine = std::move(machine),
          workspace_bytes = std::move(workspace_bytes)](
             const Graph& graph, const Node& node) -> absl::StatusOr<NodeCost> {
    NodeCost cost;
    LOADLINE_ASSIGN_OR_RETURN(cost.workspace_bytes,
                              workspace_bytes(graph, node));
    const auto measured = machine.ops.find(models::OperatorKey(graph, node));
    if (measured != machine.ops.end()) {
      cost.time_ns = measured->second;
    } else {
      LOADLINE_ASSIGN_OR_RETURN(cost.time_ns, Roofline(machine, graph, node));
    }
    return cost;
  };
}

}  // namespace loadline::passes
