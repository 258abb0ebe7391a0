// ONNX export: the imported model with its trained weights.
#ifndef LOADLINE_MODELS_ONNX_EXPORT_H_
#define LOADLINE_MODELS_ONNX_EXPORT_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "models/types.h"

namespace loadline::models {

// Writes the model at `original_path` to `out_path` with the contents of the
// initializers named in `trained` replaced; everything else is unchanged.
// External data is embedded, so the result is one file (at most 2 GiB, a limit
// of protobuf). Writes to a temporary file in the same folder, syncs and
// renames it: after an error no new file is left and an existing `out_path` is
// unchanged. Each tensor of `trained` is dropped once it is copied, so that the
// weights are in memory once where the caller moves them here.
//
// Errors: InvalidArgument (no such initializer, other type or shape, result
// too large), NotFound, ResourceExhausted (disk full), Unavailable (other
// failures of the file system).
absl::Status ExportTrained(const std::string& original_path,
                           std::map<std::string, Tensor> trained,
                           const std::string& out_path);

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_ONNX_EXPORT_H_
