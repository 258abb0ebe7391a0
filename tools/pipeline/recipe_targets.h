// From targets in MACs or peak bytes to sparsities.
#ifndef LOADLINE_TOOLS_PIPELINE_RECIPE_TARGETS_H_
#define LOADLINE_TOOLS_PIPELINE_RECIPE_TARGETS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "executor/device/device.h"
#include "models/graph.h"
#include "passes/compress/recipe.h"
#include "tools/pipeline/planned_step.h"

namespace loadline::tools {

// The bytes that a training step of a model needs to keep everything. From
// sizes alone: nothing is measured.
absl::StatusOr<int64_t> KeepEverythingBytes(const models::Graph& model,
                                            const StepFlags& flags,
                                            executor::Device& device);

// The sparsity that each prune entry reaches at its end; 0 for other entries.
// `model`: as imported. A target in sparsity is that sparsity. Any other is the
// smallest sparsity, to 1/256, with which the model at the end of the entry's
// window has no more than the target; entries that end before or with it have
// their own. Bytes are those of every phase of the `steps` after the window,
// with the quantizers that train then. Errors: InvalidArgument, as RecipeError,
// where no sparsity that the entry allows reaches the target, or its scope is
// global (then widths are not known before training), or it is met without the
// entry; those of MakePhaseModel and of planning.
absl::StatusOr<std::vector<double>> ResolveTargets(const models::Graph& model,
                                                   const passes::Recipe& recipe,
                                                   int64_t steps,
                                                   const StepFlags& flags,
                                                   executor::Device& device);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_RECIPE_TARGETS_H_
