// Takes parameters, statistics and optimizer states from one phase of a recipe
// to the next, in host memory.
#ifndef LOADLINE_TOOLS_PIPELINE_CARRY_STATE_H_
#define LOADLINE_TOOLS_PIPELINE_CARRY_STATE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/graph.h"
#include "passes/compress/prune_graph.h"
#include "tools/pipeline/replan.h"

namespace loadline::tools {

using KeptAxes = std::map<std::string, std::vector<passes::KeptAxis>>;

// The initial contents of a graph's parameters and states.
RunState InitialState(const models::Graph& graph);

// `state` of a program of `step` without the indices that are not in `kept`:
// PrunedGraph::kept, by parameter or statistic. A state "PARAMETER.NAME" loses
// the indices of its parameter along the axes that it has in full: an optimizer
// state along all, a mask along its own. A state in 8 bits is decoded, cut and
// encoded; it becomes f32 where its parameter gets so small that the next step
// has it in f32. Unimplemented, with its name, for one
// of another form. `state` is freed tensor by tensor.
absl::StatusOr<RunState> SliceState(RunState state, const models::Graph& step,
                                    const KeptAxes& kept);

// Makes `state` the initial contents of `step`; what `step` does not have is
// dropped. Internal if a tensor's size differs.
absl::Status SetContents(RunState state, models::Graph* step);

int64_t BytesOf(const RunState& state);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_CARRY_STATE_H_
