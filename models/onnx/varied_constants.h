// Constants that the import computes, at two sizes of the model's open axes:
// those that are equal do not depend on the batch.
#ifndef LOADLINE_MODELS_ONNX_VARIED_CONSTANTS_H_
#define LOADLINE_MODELS_ONNX_VARIED_CONSTANTS_H_

#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "models/onnx/import.h"
#include "models/types.h"

namespace loadline::models::onnx_internal {

// By the tensor's name after opset conversion and inlining. Those above 1 MiB
// are left out.
using FoldedConstants = std::map<std::string, Tensor>;

struct VariedConstants {
  FoldedConstants here;   // at the sizes of the options
  FoldedConstants there;  // where open axes are twice as long
  // False: only first axes are, because the model takes no others.
  bool all_axes = true;
};

// `original` is ImportOnnx(path, options). Errors of ImportOnnx, where the
// model takes no other size.
absl::StatusOr<VariedConstants> FoldAtTwoSizes(const std::string& path,
                                               const ImportOptions& options,
                                               const Imported& original);

// The constant, if it has the same contents at both sizes.
std::optional<Tensor> FixedConstant(const VariedConstants& varied,
                                    const std::string& name);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_VARIED_CONSTANTS_H_
