// Averages are states and begin as zeros; the first step replaces them. Tested
// in tests/passes/add_optimizer_test.cc.
#include "passes/average_weights.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "passes/add_optimizer.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {

absl::Status AverageWeights(models::Graph& graph, double decay) {
  const size_t nodes = graph.nodes.size();
  for (size_t n = 0; n < nodes; ++n) {
    if (!IsOptimizer(graph.nodes[n])) continue;
    const models::ValueId updated = graph.nodes[n].outputs[0];
    const models::Value& parameter = graph.value(graph.nodes[n].inputs[0]);
    const models::TensorType type = parameter.type;
    const std::string name = AverageName(parameter.name);
    if (graph.Find(name).has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the model already has a value named '", name,
          "', the name of an average of weights; rename it in the model"));
    }
    const models::ValueId average =
        graph.AddState(name, models::ZeroTensor(type));
    LOADLINE_ASSIGN_OR_RETURN(
        const std::vector<models::ValueId> outputs,
        graph.AddNode("AverageUpdate", absl::StrCat(name, ".update"),
                      {average, updated}, {{"decay", decay}},
                      models::Phase::kUpdate));
    graph.updates.emplace_back(average, outputs[0]);
  }
  return absl::OkStatus();
}

}  // namespace loadline::passes
