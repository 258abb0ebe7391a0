// Whose bytes and whose time: what a person wants to know of values and nodes
// that a Problem, by design, does not say.
#ifndef LOADLINE_TOOLS_REPORT_ATTRIBUTION_H_
#define LOADLINE_TOOLS_REPORT_ATTRIBUTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "models/graph.h"
#include "planner/problem/problem.h"

namespace loadline::tools {

// In the order in which the report stacks them.
enum class MemoryKind {
  kParameters,  // running statistics and constants too
  kOptimizer,
  kGradients,    // all that backward and update nodes make
  kActivations,  // all that forward and loss nodes make, and the data
  kWorkspace,
  kCopies,  // only waiting for a copy to end
};
inline constexpr int kMemoryKindCount = 6;
absl::string_view MemoryKindName(MemoryKind kind);

struct Attribution {
  // By node of the problem.
  std::vector<std::string> operators;  // "MatMul"; empty without a graph
  std::vector<std::string> phases;     // "forward", ...; empty without a graph
  std::vector<std::string> modules;    // "blocks.0.qkv"; may be empty
  // By value of the problem.
  std::vector<MemoryKind> kinds;
  std::vector<std::string> value_modules;
};

// `graph` is what the problem was posed from, or null: then only what persists
// tells kinds apart. `model_tensors` names the states that are the model's own
// and not the optimizer's.
//
// Modules: the path in front of a node's own name, where names have one
// ("/layer1/conv1/Conv"); else that of the parameter it reads, without its last
// part ("blocks.0.qkv.weight"); else that of the node that made what it reads
// first.
Attribution Attribute(const planner::Problem& problem,
                      const models::Graph* graph,
                      const std::vector<std::string>& model_tensors);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_REPORT_ATTRIBUTION_H_
