// ONNX export: the model that was imported, with trained numbers in it.
#ifndef LOADLINE_MODELS_ONNX_EXPORT_H_
#define LOADLINE_MODELS_ONNX_EXPORT_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "models/types.h"

namespace loadline::models {

// Writes the model at `original_path` to `out_path` with the contents of the
// initializers named in `trained` replaced; everything else stays as it was.
// External data is embedded, so the result is one file (at most 2 GiB, a
// limit of protobuf). Written under a temporary name beside `out_path`,
// flushed, then renamed: on an error nothing is left behind and an older
// `out_path` is untouched.
//
// Errors: InvalidArgument (no such initializer, other type or shape, result
// too large), NotFound, ResourceExhausted (disk full), Unavailable (other
// failures of the file system).
absl::Status ExportTrained(const std::string& original_path,
                           const std::map<std::string, Tensor>& trained,
                           const std::string& out_path);

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_ONNX_EXPORT_H_
