// One pass in the nodes' order, so that a base is known before its views.
// Tested in tests/models/storage_test.cc.
#include "models/storage.h"

#include "models/ops/operator.h"

namespace loadline::models {

bool IsView(const Node& node) {
  const Operator* op = FindOperator(node.op);
  return op != nullptr && op->view;
}

std::vector<ValueId> StorageRoots(const Graph& graph) {
  std::vector<ValueId> roots;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    roots.push_back(ValueId(static_cast<int32_t>(i)));
  }
  for (const Node& node : graph.nodes) {
    if (IsView(node)) {
      roots[Index(node.outputs[0])] = roots[Index(node.inputs[0])];
    }
  }
  return roots;
}

}  // namespace loadline::models
