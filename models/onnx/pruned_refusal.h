// What a user can do about a pruned model that cannot be written.
#ifndef LOADLINE_MODELS_ONNX_PRUNED_REFUSAL_H_
#define LOADLINE_MODELS_ONNX_PRUNED_REFUSAL_H_

#include "absl/status/status.h"
#include "models/graph.h"

namespace loadline::models::onnx_internal {

// Unimplemented: names the node that `why` is about, and the layers whose
// pruned channels reach it, which a recipe can exclude. `why` names nodes as
// the import and CompareGraphs do. `pruned` has the ids of `original`.
absl::Status ExplainRefusal(const Graph& original, const Graph& pruned,
                            const absl::Status& why);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_PRUNED_REFUSAL_H_
