// Goes through the phases of a recipe without planning or training them.
#ifndef LOADLINE_TOOLS_PIPELINE_CHECK_PHASES_H_
#define LOADLINE_TOOLS_PIPELINE_CHECK_PHASES_H_

#include "absl/status/statusor.h"
#include "models/graph.h"
#include "passes/compress/recipe.h"
#include "tools/pipeline/planned_step.h"

namespace loadline::tools {

// The errors that a later phase would end a run with, as far as they do not
// depend on training: entries that prune nothing, criteria that a group has no
// scores for, models that cannot be cut, optimizer states of another form,
// names that are taken. `model`: as imported. Returns the model of the last
// phase, without the channels that passes::FirstChannels names.
absl::StatusOr<models::Graph> CheckAllPhases(models::Graph model,
                                             const passes::Recipe& recipe,
                                             const StepFlags& flags);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_CHECK_PHASES_H_
