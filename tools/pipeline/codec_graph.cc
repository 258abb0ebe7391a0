// Tested by tests/tools/pipeline/codec_graph_test.cc.
#include "tools/pipeline/codec_graph.h"

#include "models/codec_nodes.h"
#include "passes/make_problem.h"
#include "planner/base/status_macros.h"

namespace loadline::tools {

absl::StatusOr<models::Graph> CodecGraph(const models::Graph& step,
                                         bool lossy) {
  passes::MakeProblemOptions options;
  options.cost = [](const models::Graph&, const models::Node&) {
    return passes::NodeCost{};
  };
  if (lossy) {
    options.gradient_errors.assign(step.values.size(), 0.0);
    options.max_gradient_error = 1;
  }
  LOADLINE_ASSIGN_OR_RETURN(const planner::Problem problem,
                            passes::MakeProblem(step, options));
  models::Graph codecs;
  for (const planner::Value& value : problem.values) {
    const models::ValueId id{static_cast<int32_t>(value.file_id)};
    for (const planner::Codec& codec : value.stash) {
      if (codec.name == "bf16") continue;
      LOADLINE_RETURN_IF_ERROR(
          models::AddCodecNodes(step, id, codec.name, &codecs).status());
    }
  }
  return codecs;
}

}  // namespace loadline::tools
