// How errors name a node.
#ifndef LOADLINE_EXECUTOR_DEVICE_NODE_LABEL_H_
#define LOADLINE_EXECUTOR_DEVICE_NODE_LABEL_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "models/graph.h"

namespace loadline::executor {

// "node blocks.0.up (MatMul)".
inline std::string NodeLabel(const models::Node& node) {
  return absl::StrCat("node ", node.name, " (", node.op, ")");
}

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_DEVICE_NODE_LABEL_H_
