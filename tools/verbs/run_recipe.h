// `loadline run --recipe`.
#ifndef LOADLINE_TOOLS_VERBS_RUN_RECIPE_H_
#define LOADLINE_TOOLS_VERBS_RUN_RECIPE_H_

#include <atomic>

#include "absl/status/status.h"
#include "tools/pipeline/model_files.h"
#include "tools/verbs/run_flags.h"

namespace loadline::tools {

// Trains in the phases of the recipe, writes the compressed model and prints
// the figures of each phase.
absl::Status RunRecipe(const RunFlags& flags, const ModelFiles& model_files,
                       const std::atomic<bool>* stop);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_VERBS_RUN_RECIPE_H_
