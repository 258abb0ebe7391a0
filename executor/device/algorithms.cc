// Adds the chosen algorithm to a node as an attribute, which kernels read when
// they are prepared. Tested in tests/executor/measure/measure_test.cc.
#include "executor/device/algorithms.h"

#include "models/ops/operator.h"

namespace loadline::executor {

models::Node WithAlgorithm(const models::Graph& graph, const models::Node& node,
                           const Algorithms& algorithms) {
  models::Node chosen = node;
  if (algorithms.empty()) return chosen;
  const auto found = algorithms.find(models::OperatorKey(graph, node));
  if (found != algorithms.end()) {
    chosen.attributes.Set(kAlgorithmAttribute, found->second);
  }
  return chosen;
}

}  // namespace loadline::executor
