// Shape arithmetic, and the errors of kernels that cannot be prepared. Tested
// through every device's kernels in tests/conformance/.
#include "executor/ops/prepare.h"

#include "absl/strings/str_cat.h"

namespace loadline::executor {

absl::Status Prepare::NoKernel() const {
  return absl::UnimplementedError(
      absl::StrCat("no ", device_, " kernel for operator ", node_.op, " (node ",
                   node_.name, ")"));
}

absl::Status Prepare::Unsupported(DType dtype) const {
  return absl::UnimplementedError(
      absl::StrCat("no ", device_, " kernel for ", node_.op, " of type ",
                   models::DTypeName(dtype), " (node ", node_.name, ")"));
}

absl::Status Prepare::AllF32() const {
  for (int i = 0; i < inputs(); ++i) {
    if (has_input(i) && input(i).dtype != DType::kF32) {
      return Unsupported(input(i).dtype);
    }
  }
  for (int i = 0; i < outputs(); ++i) {
    if (output(i).dtype != DType::kF32) return Unsupported(output(i).dtype);
  }
  return absl::OkStatus();
}

absl::Status Prepare::Invalid(absl::string_view what) const {
  return absl::InvalidArgumentError(
      absl::StrCat(node_.op, " (node ", node_.name, "): ", what));
}

int64_t Elements(absl::Span<const int64_t> dims, int64_t begin, int64_t end) {
  int64_t n = 1;
  for (int64_t i = begin; i < end; ++i) n *= dims[i];
  return n;
}

Ints DenseStrides(absl::Span<const int64_t> dims) {
  Ints strides(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return strides;
}

AxisSplit SplitAt(absl::Span<const int64_t> dims, int64_t axis) {
  const int64_t rank = static_cast<int64_t>(dims.size());
  axis = PositiveAxis(axis, rank);
  return {Elements(dims, 0, axis), dims[axis], Elements(dims, axis + 1, rank)};
}

}  // namespace loadline::executor
