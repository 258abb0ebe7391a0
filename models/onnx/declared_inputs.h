// A model's inputs as its file declares them, and the sizes that options give
// to open axes.
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
  // Absent: the file declares no shape.
  std::optional<std::vector<DeclaredAxis>> axes;
};

// The inputs that are not initializers, as in the file, without those that no
// output depends on. Errors: those of ImportOnnx for a file that cannot be
// read.
absl::StatusOr<std::vector<DeclaredInput>> ReadDeclaredInputs(
    const std::string& path, const ImportOptions& options);

// The same of the outputs, in the order of an imported graph's.
struct DeclaredModel {
  std::vector<DeclaredInput> inputs;
  std::vector<std::string> unread_inputs;  // by name
  std::vector<DeclaredInput> outputs;
};
absl::StatusOr<DeclaredModel> ReadDeclared(const std::string& path,
                                           const ImportOptions& options);

// The names of the outputs, as in the file and in the order of an imported
// graph's. The same errors.
absl::StatusOr<std::vector<std::string>> ReadDeclaredOutputs(
    const std::string& path, const ImportOptions& options);

// Size that the options give to an open axis: from the input's whole shape,
// then by the axis' name, then (first axis only) the batch or its default.
// Requires input.axes.
std::optional<int64_t> GivenSize(const DeclaredInput& input, size_t axis,
                                 const ImportOptions& options);

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_ONNX_DECLARED_INPUTS_H_
