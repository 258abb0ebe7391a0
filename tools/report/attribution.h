// Attributes bytes and time to kinds of memory, operators, phases and modules,
// which a Problem by design does not contain.
#ifndef LOADLINE_TOOLS_REPORT_ATTRIBUTION_H_
#define LOADLINE_TOOLS_REPORT_ATTRIBUTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "models/graph.h"
#include "planner/problem/problem.h"

namespace loadline::tools {

// In the order of the report's stacked chart.
enum class MemoryKind {
  kParameters,  // also running statistics and constants
  kOptimizer,
  kGradients,    // outputs of backward and update nodes
  kActivations,  // outputs of forward and loss nodes, and the data
  kWorkspace,
  kCopies,  // bytes that only wait for a copy to end
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

// `graph` is the graph that the problem was made from, or null: then kinds only
// distinguish persistent values. `model_tensors`: the states that belong to the
// model and not to the optimizer.
//
// Modules: the path before a node's own name, if names have one
// ("/layer1/conv1/Conv"); else the name of the parameter that it reads, without
// the last part ("blocks.0.qkv.weight"); else the module of the node that made
// its first input.
Attribution Attribute(const planner::Problem& problem,
                      const models::Graph* graph,
                      const std::vector<std::string>& model_tensors);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_REPORT_ATTRIBUTION_H_
