// ONNX export of a pruned model.
#ifndef LOADLINE_MODELS_ONNX_EXPORT_PRUNED_H_
#define LOADLINE_MODELS_ONNX_EXPORT_PRUNED_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "models/graph.h"
#include "models/onnx/import.h"
#include "models/types.h"

namespace loadline::models {

// Writes the model at `original_path` with the shapes of `pruned` to
// `out_path`. `pruned` is what passes::PruneGraph, once or several times, made
// of the graph that ImportOnnx(original_path, options) gives; it has the same
// ids. Parameters, statistics and constants get the contents that `pruned` has,
// or those in `trained`, by name. Numbers in the file that name sizes are
// rewritten: the shapes of Reshape and Expand, bounds of Slice, Split and Pad,
// `group` and `num_groups`, heads of Attention, `hidden_size`. Open axes stay
// open. Initializers keep their type. Functions are inlined, declared shapes of
// intermediate tensors are dropped, and external data is embedded (at most 2
// GiB).
//
// Before the file is written, it is checked by the onnx library and imported
// again, and must give `pruned` with these contents, node by node, but for
// nodes without a reader. If the rules do not suffice, what the file computes
// from sizes that have changed, and not from the batch, becomes constants.
//
// Errors: Unimplemented if it still does not, naming the first difference and
// the layers that a recipe can exclude (pruned_refusal.h);
// InvalidArgument if `pruned` is not of this model or a tensor has another
// shape; FailedPrecondition if contents are missing
// (ImportOptions::allow_missing_weights); those of ImportOnnx and
// ExportTrained.
absl::Status ExportPruned(const std::string& original_path,
                          const ImportOptions& options, const Graph& pruned,
                          std::map<std::string, Tensor> trained,
                          const std::string& out_path);

// The same without writing: whether this model, pruned to these shapes, can be
// exported. For a check before training; contents may be missing.
absl::Status CheckPrunedExport(const std::string& original_path,
                               const ImportOptions& options,
                               const Graph& pruned);

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_ONNX_EXPORT_PRUNED_H_
