// Which algorithm a kernel takes where a library offers several. Devices differ
// in what is fastest, so it is measured (calibrate.h) and kept in the profile:
// the workspace that was planned is then the workspace that is used, and all
// plans of a model compute with the same bits.
#ifndef LOADLINE_EXECUTOR_DEVICE_ALGORITHMS_H_
#define LOADLINE_EXECUTOR_DEVICE_ALGORITHMS_H_

#include <map>
#include <string>

#include "models/graph.h"

namespace loadline::executor {

// By models::OperatorKey: one of the names in Kernel::algorithms.
using Algorithms = std::map<std::string, std::string>;

// An attribute that no graph has: a device adds it to the node that it
// prepares. A kernel that does not offer the name takes its first algorithm.
inline constexpr char kAlgorithmAttribute[] = "algorithm";

// The node as it is to be prepared.
models::Node WithAlgorithm(const models::Graph& graph, const models::Node& node,
                           const Algorithms& algorithms);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_DEVICE_ALGORITHMS_H_
