// Converts a Graph into the planner's Problem: bytes and nanoseconds only.
//
//   h = MatMul(x, w)            value x, w (persistent), h, y
//   r = Reshape(h)         ->   node MatMul: x, w -> h
//   y = Relu(r)                 node Relu: h -> y, inplace (h, y)
//
// Correspondence of graph and problem, for executors of a plan:
//   - Values that share storage (models::StorageRoots) are one value; its
//     `file_id` is the root's ValueId and its name the root's. Values that no
//     node touches and that are no output are left out (an input that the
//     model ignores, an unused parameter).
//   - A node's `file_id` is its NodeId. Views are left out, so ids have gaps.
//   - A node's `inputs` are the roots of its inputs in the graph's order,
//     without absent optional inputs: the k-th entry is the k-th present
//     input, and a value read twice is listed twice. `outputs` are the node's
//     outputs in order.
//   - `outputs` are the roots of the graph's outputs, each once.
//   - `stash` holds the codecs that can store a value without losing a bit
//     (lossless_codecs.h) and, where `gradient_error` allows it, groups of 8,
//     4, 2 and 1 bits. Their times are those of the nodes Encode and Decode.
//     Only values that the backward pass or an update reads have any.
//   - `inplace` holds the operator's traits where they are safe, and every
//     update of a persistent value; its new contents are persistent too.
#ifndef LOADLINE_PASSES_MAKE_PROBLEM_H_
#define LOADLINE_PASSES_MAKE_PROBLEM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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
  // Smaller values are never copied to the host: copying them saves less memory
  // than its latency is worth, and the search has fewer candidates.
  int64_t smallest_offload_bytes = 4096;
  // Smaller values are never stored compressed, for the same reasons.
  int64_t smallest_stash_bytes = 4096;
  // By value of the graph (empty: lossy codecs are not offered): the relative
  // error of the step's gradient if the value is stored in groups of 8 bits;
  // below 0: do not offer. With b bits it is 255 / (2^b - 1) times as large.
  std::vector<double> gradient_errors;
  // The largest relative error of the gradient that a plan may have. A codec's
  // `error` in the problem is the square of its own error divided by this.
  double max_gradient_error = 0;
};

// Errors: the cost function's; Unimplemented naming a state whose update no
// node writes in place.
absl::StatusOr<planner::Problem> MakeProblem(const models::Graph& graph,
                                             const MakeProblemOptions& options);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_MAKE_PROBLEM_H_
