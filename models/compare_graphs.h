// Whether two graphs compute the same.
#ifndef LOADLINE_MODELS_COMPARE_GRAPHS_H_
#define LOADLINE_MODELS_COMPARE_GRAPHS_H_

#include "absl/status/status.h"
#include "models/graph.h"

namespace loadline::models {

// OK if both have the same nodes in the same order, with equal operators,
// attributes, types, phases and contents, the same inputs, outputs and updates.
// Names of nodes, intermediate values and constants may differ, and which
// constants are shared; parameters, states and inputs are compared by name.
// FailedPrecondition names the first difference.
absl::Status CompareGraphs(const Graph& want, const Graph& got);

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_COMPARE_GRAPHS_H_
