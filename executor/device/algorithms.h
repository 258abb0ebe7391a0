// Which algorithm a kernel uses where a library offers several. The fastest
// differs between devices, so it is measured once (calibrate.h) and kept in the
// machine profile. The workspace that was planned is then the workspace that is
// used, and all plans of a model compute the same bits.
#ifndef LOADLINE_EXECUTOR_DEVICE_ALGORITHMS_H_
#define LOADLINE_EXECUTOR_DEVICE_ALGORITHMS_H_

#include <map>
#include <string>

#include "models/graph.h"

namespace loadline::executor {

// Keyed by models::OperatorKey; the value is one of Kernel::algorithms.
using Algorithms = std::map<std::string, std::string>;

// An attribute that graphs never have: the device adds it to the node that it
// prepares. A kernel that does not offer the named algorithm uses its first
// one.
inline constexpr char kAlgorithmAttribute[] = "algorithm";

// A copy of `node` that carries the algorithm which `algorithms` has for it, if
// any.
models::Node WithAlgorithm(const models::Graph& graph, const models::Node& node,
                           const Algorithms& algorithms);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_DEVICE_ALGORITHMS_H_
