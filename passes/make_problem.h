// The bridge from a Graph to the planner's Problem: bytes and nanoseconds
// only.
//
//   h = MatMul(x, w)            value x, w (persistent), h, y
//   r = Reshape(h)         ->   node MatMul: x, w -> h
//   y = Relu(r)                 node Relu: h -> y, inplace (h, y)
//
// How the two correspond, for whoever executes a plan:
//   - Values that share storage are one value, models::StorageRoots; its
//     `file_id` is the root's ValueId, its name the root's. Values that no node
//     touches and that are no output are left out (an input that the model
//     ignores, a parameter without use).
//   - A node's `file_id` is its NodeId. Views are left out, so ids have gaps.
//   - A node's `inputs` are the roots of its inputs in the graph's order,
//     absent optional inputs left out and nothing else: the k-th entry is the
//     k-th present input, and a value read twice is listed twice. `outputs`
//     are the node's outputs in order.
//   - `outputs` are the roots of the graph's outputs, each once.
//   - `inplace` holds the operator's traits where they are safe, and every
//     update of a persistent value; its new contents are persistent too.
#ifndef LOADLINE_PASSES_MAKE_PROBLEM_H_
#define LOADLINE_PASSES_MAKE_PROBLEM_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "models/graph.h"
#include "passes/cost_model.h"
#include "planner/problem/machine.h"
#include "planner/problem/problem.h"

namespace loadline::passes {

struct MakeProblemOptions {
  std::string name;
  std::optional<planner::Machine> machine;
  CostFunction cost;  // required
  int64_t alignment_bytes = 256;
  // Values smaller than this are never copied to the host: the latency of two
  // copies buys nothing, and the search has less to look at.
  int64_t smallest_offload_bytes = 4096;
};

// Errors: the cost function's; Unimplemented naming the state whose update no
// node writes in place.
absl::StatusOr<planner::Problem> MakeProblem(const models::Graph& graph,
                                             const MakeProblemOptions& options);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_MAKE_PROBLEM_H_
