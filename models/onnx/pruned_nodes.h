// Adapts the nodes of an ONNX graph to the shapes of its pruned form.
#ifndef LOADLINE_MODELS_ONNX_PRUNED_NODES_H_
#define LOADLINE_MODELS_ONNX_PRUNED_NODES_H_

#include "models/graph.h"
#include "models/onnx/import.h"
#include "models/onnx/open_axes.h"
#include "models/onnx/varied_constants.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// Rewrites what names sizes or positions: attributes, and inputs such as the
// shape of a Reshape, which become new initializers. `model` was imported as
// `original` and has no functions; `pruned` has the ids of `original.graph`. An
// initializer of the model that `pruned` has smaller must have its new contents
// already. `fixed` are the sizes that the original file fixes, `varied` what
// the original computes at two sizes; null: what a rule cannot tell without
// stays as it is. Removes nodes and initializers that nothing uses any more.
// Does what it can: whether the result is the pruned model is for the caller to
// check.
void RewritePrunedNodes(const Imported& original, const Graph& pruned,
                        FixedSizes fixed, const VariedConstants* varied,
                        onnx::ModelProto* model);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_PRUNED_NODES_H_
