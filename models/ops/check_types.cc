// Checks shared by the `infer` functions. Tested in tests/models/infer_test.cc.
#include "models/ops/check_types.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "absl/strings/str_join.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

std::string DimsText(const std::vector<int64_t>& dims) {
  return absl::StrCat("[", absl::StrJoin(dims, ","), "]");
}

}  // namespace

absl::Status RequireDType(InputTypes inputs, int i,
                          std::initializer_list<DType> allowed) {
  const DType dtype = inputs[i]->dtype;
  if (std::find(allowed.begin(), allowed.end(), dtype) != allowed.end()) {
    return absl::OkStatus();
  }
  absl::Status status =
      Refuse("input ", i, " is ", inputs[i]->ToString(), ", not ",
             absl::StrJoin(allowed, " or ", [](std::string* out, DType d) {
               absl::StrAppend(out, DTypeName(d));
             }));
  status.SetPayload(kRefusedDType, absl::Cord(DTypeName(dtype)));
  return status;
}

absl::Status RequireF32(InputTypes inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) continue;
    LOADLINE_RETURN_IF_ERROR(
        RequireDType(inputs, static_cast<int>(i), {DType::kF32}));
  }
  return absl::OkStatus();
}

absl::Status RequireFloat(InputTypes inputs) {
  return RequireFloatData(inputs, inputs.size());
}

absl::Status RequireFloatData(InputTypes inputs, size_t data) {
  LOADLINE_RETURN_IF_ERROR(
      RequireDType(inputs, 0, {DType::kF32, DType::kBF16}));
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) continue;
    LOADLINE_RETURN_IF_ERROR(
        RequireDType(inputs, static_cast<int>(i),
                     {i < data ? inputs[0]->dtype : DType::kF32}));
  }
  return absl::OkStatus();
}

absl::Status RequireType(InputTypes inputs, int i, const TensorType& type) {
  if (*inputs[i] == type) return absl::OkStatus();
  return Refuse("input ", i, " is ", inputs[i]->ToString(), ", not ",
                type.ToString());
}

absl::Status RequireDims(absl::string_view what, const TensorType& type,
                         const std::vector<int64_t>& dims) {
  if (type.dims == dims) return absl::OkStatus();
  return Refuse(what, " has shape ", DimsText(type.dims), ", not ",
                DimsText(dims));
}

absl::StatusOr<int64_t> CheckedAxis(const Node& node, absl::string_view name,
                                    int64_t rank) {
  const int64_t axis = node.attributes.Int(name, 0);
  if (axis < 0 || axis >= rank) {
    return Refuse("attribute ", name, " is ", axis, ", not an axis of rank ",
                  rank);
  }
  return axis;
}

absl::Status CheckApproximate(const Node& node) {
  const std::string approximate = node.attributes.String("approximate", "none");
  if (approximate == "none" || approximate == "tanh") return absl::OkStatus();
  return Refuse("attribute approximate is \"", approximate,
                "\", not \"none\" or \"tanh\"");
}

absl::StatusOr<TensorType> CheckedShape(const Node& node, DType dtype) {
  absl::StatusOr<TensorType> type =
      MakeTensorType(dtype, node.attributes.IntList("shape"));
  if (!type.ok()) {
    return Refuse("attribute shape: ", type.status().message());
  }
  return type;
}

absl::StatusOr<std::vector<int64_t>> BroadcastDims(
    const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  const size_t rank = std::max(a.size(), b.size());
  std::vector<int64_t> dims(rank);
  for (size_t i = 0; i < rank; ++i) {
    // Missing leading dimensions count as 1.
    const int64_t da = i < rank - a.size() ? 1 : a[i - (rank - a.size())];
    const int64_t db = i < rank - b.size() ? 1 : b[i - (rank - b.size())];
    if (da != db && da != 1 && db != 1) {
      return Refuse("shapes ", DimsText(a), " and ", DimsText(b),
                    " do not broadcast");
    }
    dims[i] = da == 1 ? db : da;
  }
  return dims;
}

absl::Status CheckStretch(const Node& node, const TensorType& part,
                          const TensorType& whole) {
  const int64_t start = node.attributes.Int("start", 0);
  if (start >= 0 && start <= whole.elements() &&
      part.elements() <= whole.elements() - start) {
    return absl::OkStatus();
  }
  return Refuse("elements ", start, " to ", start, " + ", part.elements(),
                " are not all among the ", whole.elements(), " of ",
                whole.ToString());
}

absl::StatusOr<OutputTypes> One(absl::StatusOr<TensorType> type) {
  LOADLINE_ASSIGN_OR_RETURN(TensorType checked, std::move(type));
  return OutputTypes{std::move(checked)};
}

int64_t BytesReadAndWritten(InputTypes inputs,
                            absl::Span<const TensorType> outputs) {
  int64_t bytes = 0;
  for (const TensorType* input : inputs) {
    if (input != nullptr) bytes += input->bytes();
  }
  for (const TensorType& output : outputs) bytes += output.bytes();
  return bytes;
}

}  // namespace loadline::models
