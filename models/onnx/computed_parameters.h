// What torch's newer exporter computed from parameters while it optimized the
// graph, which it does by default: the transposed weight of a linear layer, or
// the exponential of a logarithm.
#ifndef LOADLINE_MODELS_ONNX_COMPUTED_PARAMETERS_H_
#define LOADLINE_MODELS_ONNX_COMPUTED_PARAMETERS_H_

#include <optional>
#include <set>
#include <string>

#include "models/onnx/export_marks.h"

namespace loadline::models::onnx_internal {

// An initializer with elements of one parameter, in another order or shape.
struct MovedParameter {
  std::string parameter;
  bool part = false;  // maybe not all of its elements
  // The operations that moved them, such as "transpose".
  std::set<std::string> moves;
};

// Judges by the names of the values that the exporter folded, which are those
// of PyTorch's operations; names that it invents (val_3) are of parts of one
// operation, such as the transposition in a linear layer. None of initializers
// that were not computed, and of those that were in other ways.
std::optional<MovedParameter> FindMovedParameter(const ExportMarks& marks,
                                                 const std::string& name);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_COMPUTED_PARAMETERS_H_
