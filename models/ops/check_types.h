// Checks shared by the `infer` functions. All errors are InvalidArgument;
// InferTypes prepends operator and node name.
#ifndef LOADLINE_MODELS_OPS_CHECK_TYPES_H_
#define LOADLINE_MODELS_OPS_CHECK_TYPES_H_

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "models/ops/operator.h"

namespace loadline::models {

using InputTypes = absl::Span<const TensorType* const>;
using OutputTypes = std::vector<TensorType>;

template <typename... Parts>
absl::Status Refuse(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// Payload of the error for an element type that an operator does not support:
// the type's name. InferTypes keeps it.
inline constexpr char kRefusedDType[] = "loadline/refused-dtype";

// Input `i` has one of the element types.
absl::Status RequireDType(InputTypes inputs, int i,
                          std::initializer_list<DType> allowed);
// Every present input is f32.
absl::Status RequireF32(InputTypes inputs);
// Every present input is of one type, f32 or bf16.
absl::Status RequireFloat(InputTypes inputs);
// The first `data` inputs are of one type, f32 or bf16; others are f32.
absl::Status RequireFloatData(InputTypes inputs, size_t data);
// Input `i` has exactly this type.
absl::Status RequireType(InputTypes inputs, int i, const TensorType& type);
// `type`'s dimensions are `dims`; `what` names it in the error.
absl::Status RequireDims(absl::string_view what, const TensorType& type,
                         const std::vector<int64_t>& dims);

// The attribute `name`, an axis in [0, rank).
absl::StatusOr<int64_t> CheckedAxis(const Node& node, absl::string_view name,
                                    int64_t rank);
// The attribute `approximate` is a form of Gelu.
absl::Status CheckApproximate(const Node& node);
// The attribute `shape` as a type of `dtype`.
absl::StatusOr<TensorType> CheckedShape(const Node& node, DType dtype);

// NumPy's broadcasting of two shapes.
absl::StatusOr<std::vector<int64_t>> BroadcastDims(
    const std::vector<int64_t>& a, const std::vector<int64_t>& b);
// `part` elements from attribute `start` on are elements of `whole`.
absl::Status CheckStretch(const Node& node, const TensorType& part,
                          const TensorType& whole);

// One output.
absl::StatusOr<OutputTypes> One(absl::StatusOr<TensorType> type);

// Bytes of all present inputs and all outputs.
int64_t BytesReadAndWritten(InputTypes inputs,
                            absl::Span<const TensorType> outputs);

// A cost of a constant number of flops per element of output 0.
template <int kFlopsPerElement>
OperatorCost PerElement(const Node&, InputTypes inputs,
                        absl::Span<const TensorType> outputs) {
  OperatorCost cost;
  cost.flops = static_cast<double>(kFlopsPerElement) *
               static_cast<double>(outputs[0].elements());
  cost.bytes = BytesReadAndWritten(inputs, outputs);
  return cost;
}

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_OPS_CHECK_TYPES_H_
