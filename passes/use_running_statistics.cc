// A normalization's running statistics are those that its batch statistics
// update. Tested in tests/passes/training_pipeline_test.cc.
#include "passes/use_running_statistics.h"

#include <utility>
#include <vector>

#include "passes/remove_dead_nodes.h"

namespace loadline::passes {

using models::Graph;
using models::Node;
using models::ValueId;

namespace {

// Whether only updates of running statistics read the batch statistics of
// `norm`.
bool OnlyUpdatesReadStatistics(const Graph& graph,
                               const models::GraphIndex& index,
                               const Node& norm) {
  for (size_t o = 1; o < norm.outputs.size(); ++o) {
    const ValueId statistic = norm.outputs[o];
    for (ValueId output : graph.outputs) {
      if (output == statistic) return false;
    }
    for (models::NodeId reader : index.consumers[Index(statistic)]) {
      if (graph.node(reader).op != "RunningStatsUpdate") return false;
    }
  }
  return true;
}

}  // namespace

absl::Status UseRunningStatistics(Graph& graph) {
  const models::GraphIndex index = models::IndexGraph(graph);
  graph.updates.clear();
  for (const Node& update : graph.nodes) {
    if (update.op != "RunningStatsUpdate") continue;
    const ValueId batch_mean = update.inputs[2];
    const int32_t producer = index.producer[Index(batch_mean)];
    if (producer < 0) continue;
    Node& norm = graph.nodes[producer];
    if (norm.op != "BatchNormTraining" || norm.outputs[1] != batch_mean ||
        !OnlyUpdatesReadStatistics(graph, index, norm)) {
      continue;
    }
    norm.op = "BatchNormalization";
    norm.inputs.push_back(update.inputs[0]);
    norm.inputs.push_back(update.inputs[1]);
    norm.outputs.resize(1);
  }
  // The updates read statistics that no longer exist.
  std::erase_if(graph.nodes, [](const Node& node) {
    return node.op == "RunningStatsUpdate";
  });
  return RemoveDeadNodes(graph);
}

}  // namespace loadline::passes
