// Which values share storage. A view and its base are one value to the planner
// and one address to the executor.
#ifndef LOADLINE_MODELS_STORAGE_H_
#define LOADLINE_MODELS_STORAGE_H_

#include <vector>

#include "models/graph.h"

namespace loadline::models {

// For each value of the graph, the value that owns its storage: itself, or the
// base of a chain of views.
std::vector<ValueId> StorageRoots(const Graph& graph);

// For each value, where its bytes begin in those of its root.
std::vector<int64_t> StorageOffsets(const Graph& graph);

// Where the bytes of a view's output, of type `output`, begin in its input: 0,
// or what attribute `start` of a RowsView says.
int64_t ViewOffsetBytes(const Node& view, const TensorType& output);

// Whether the node only renames its input's bytes and so never runs.
bool IsView(const Node& node);

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_STORAGE_H_
