// A model's inputs as its file declares them: which axes are open, and what
// the options make of them.
#ifndef LOADLINE_MODELS_ONNX_DECLARED_INPUTS_H_
#define LOADLINE_MODELS_ONNX_DECLARED_INPUTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/onnx/import.h"

namespace loadline::models {

struct DeclaredAxis {
  std::optional<int64_t> size;  // absent: open
  std::string name;             // of an open axis; may be empty
};

struct DeclaredInput {
  std::string name;
  // Absent: the file gives no shape at all.
  std::optional<std::vector<DeclaredAxis>> axes;
};

// The inputs that are no initializers, before any option. Errors: those of
// ImportOnnx for a file that cannot be read.
absl::StatusOr<std::vector<DeclaredInput>> ReadDeclaredInputs(
    const std::string& path, const ImportOptions& options);

// What the options make of an open axis: the input's whole shape counts first,
// then the axis' name, then (for the first axis) the batch, or its default.
// Requires axes.
std::optional<int64_t> GivenSize(const DeclaredInput& input, size_t axis,
                                 const ImportOptions& options);

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_ONNX_DECLARED_INPUTS_H_
