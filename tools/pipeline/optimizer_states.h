// Which states of a training step belong to the optimizer of which parameter.
#ifndef LOADLINE_TOOLS_PIPELINE_OPTIMIZER_STATES_H_
#define LOADLINE_TOOLS_PIPELINE_OPTIMIZER_STATES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/graph.h"
#include "passes/compress/add_masks.h"

namespace loadline::tools {

// By parameter: the states that the node updates which updates the parameter.
using OptimizerStates = std::map<std::string, std::vector<std::string>>;

// Of a training step. Unimplemented if a state of a parameter of `masks` has
// another type than the parameter, and is not one of 8 bits: then it cannot be
// cleared with it.
absl::StatusOr<OptimizerStates> FindOptimizerStates(
    const models::Graph& step, const std::vector<passes::MaskedAxis>& masks);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_OPTIMIZER_STATES_H_
