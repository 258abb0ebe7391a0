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

std::vector<int64_t> StorageOffsets(const Graph& graph) {
  std::vector<int64_t> offsets(graph.values.size(), 0);
  for (const Node& node : graph.nodes) {
    if (!IsView(node)) continue;
    const ValueId view = node.outputs[0];
    offsets[Index(view)] = offsets[Index(node.inputs[0])] +
                           ViewOffsetBytes(node, graph.value(view).type);
  }
  return offsets;
}

int64_t ViewOffsetBytes(const Node& view, const TensorType& output) {
  return view.attributes.Int("start", 0) * DTypeBytes(output.dtype);
}

}  // namespace loadline::models
