// Element types, static shapes and tensors.
#ifndef LOADLINE_MODELS_TYPES_H_
#define LOADLINE_MODELS_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace loadline::models {

enum class DType { kF32, kF64, kF16, kBF16, kI64, kI32, kU8, kI8, kBool };

int64_t DTypeBytes(DType dtype);
absl::string_view DTypeName(DType dtype);  // "f32", "i64", ...
absl::StatusOr<DType> DTypeFromName(absl::string_view name);

// A dense row-major tensor type. All dimensions are known and >= 0; their
// product in bytes fits int64 (MakeTensorType checks).
struct TensorType {
  DType dtype = DType::kF32;
  std::vector<int64_t> dims;

  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  int64_t elements() const;
  int64_t bytes() const { return elements() * DTypeBytes(dtype); }
  std::string ToString() const;  // "f32[32,64,8,8]"
  bool operator==(const TensorType& o) const {
    return dtype == o.dtype && dims == o.dims;
  }
  bool operator!=(const TensorType& o) const { return !(*this == o); }
};

// InvalidArgument on a negative dimension or a size beyond int64.
absl::StatusOr<TensorType> MakeTensorType(DType dtype,
                                          std::vector<int64_t> dims);

// The inverse of TensorType::ToString. InvalidArgument on anything else.
absl::StatusOr<TensorType> TensorTypeFromText(absl::string_view text);

// A type and its bytes. Copies share the bytes, which are immutable.
struct Tensor {
  TensorType type;
  std::shared_ptr<const std::vector<std::byte>> data;

  template <typename T>
  absl::Span<const T> as() const {
    return {reinterpret_cast<const T*>(data->data()), data->size() / sizeof(T)};
  }
};

Tensor MakeTensor(TensorType type, const void* bytes);
Tensor ZeroTensor(TensorType type);
Tensor ScalarTensor(float value);                      // f32[]
Tensor Int64Tensor(absl::Span<const int64_t> values);  // i64[n]

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_TYPES_H_
