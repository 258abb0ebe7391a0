// Tested in tests/passes/compress/batch_statistics_test.cc.
#include "passes/compress/batch_statistics.h"

#include <set>

namespace loadline::passes {

void TakeBatchStatistics(models::Graph& model) {
  std::set<models::ValueId> statistics;
  for (models::Node& node : model.nodes) {
    if (node.op != "RunningStatsUpdate") continue;
    node.attributes.Set("momentum", 0.0);
    statistics.insert(node.outputs.begin(), node.outputs.end());
  }
  std::erase_if(model.updates, [&statistics](const auto& update) {
    return !statistics.contains(update.second);
  });
}

}  // namespace loadline::passes
