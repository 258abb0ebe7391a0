// Evaluates ONNX operators on constants: shape arithmetic, positions, masks.
#ifndef LOADLINE_MODELS_ONNX_FOLD_H_
#define LOADLINE_MODELS_ONNX_FOLD_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/onnx/wide.h"
#include "models/types.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// Whether the operator can be folded in any form.
bool CanFold(const std::string& op_type);

// The node's outputs; `inputs[i]` is null for an absent optional input.
// ResourceExhausted: an output has more than `max_elements`. InvalidArgument:
// the node is wrong. Unimplemented: this form or element type is not folded
// (the caller may emit the node instead).
absl::StatusOr<std::vector<Tensor>> Fold(const onnx::NodeProto& node,
                                         absl::Span<const Tensor* const> inputs,
                                         int64_t max_elements);

// Input of an operator's evaluation. `in[i]` is null if absent.
struct FoldContext {
  const onnx::NodeProto& node;
  std::vector<const Wide*> in;
  int64_t max_elements;

  // The elements of an integer input, or `fallback` if it is absent.
  Ints IntsOf(size_t i, const Ints& fallback = {}) const;
  bool Has(size_t i) const { return i < in.size() && in[i] != nullptr; }
  // ResourceExhausted if a result of this shape is too large.
  absl::Status CheckSize(const Ints& dims) const;
};

using FoldResult = absl::StatusOr<std::vector<Wide>>;
using FoldRule = FoldResult (*)(const FoldContext&);

// For rules: a single output, and its number of axes.
inline FoldResult One(Wide wide) {
  std::vector<Wide> results;
  results.push_back(std::move(wide));
  return results;
}
inline int64_t Rank(const Wide& wide) {
  return static_cast<int64_t>(wide.dims.size());
}

// Operators that move elements or create them (fold_movement.cc), those that
// read or write at positions (fold_index.cc), and those that compute
// (fold_arithmetic.cc). Null: not in that file.
FoldRule FindMovementRule(const std::string& op_type);
FoldRule FindIndexRule(const std::string& op_type);
FoldRule FindArithmeticRule(const std::string& op_type);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_FOLD_H_
