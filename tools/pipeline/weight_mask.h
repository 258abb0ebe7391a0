// The mask of a whole weight: unstructured, 2:4 and block sparsity. It frees no
// bytes and no time.
#ifndef LOADLINE_TOOLS_PIPELINE_WEIGHT_MASK_H_
#define LOADLINE_TOOLS_PIPELINE_WEIGHT_MASK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "models/graph.h"
#include "passes/compress/recipe.h"
#include "tools/pipeline/optimizer_states.h"
#include "tools/pipeline/persistent_values.h"

namespace loadline::tools {

// Masks more of the lowest-scoring elements (ChooseWeights), sets them and
// their optimizer states to zero, and starts accumulated scores again. Scores
// are |w| for l1, w² for l2, or those that were accumulated. Errors: those of
// `values`; FailedPrecondition for a criterion that scores channels only.
absl::Status UpdateWeightMask(const models::Value& weight, int64_t reduced_axis,
                              const passes::PruneSpec& spec, double sparsity,
                              const OptimizerStates& states,
                              PersistentValues& values);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_WEIGHT_MASK_H_
