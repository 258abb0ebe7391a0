// A small constant with widened elements, for folding: integers and bools as
// int64, floats as double. Narrow() rounds after every operation, so results
// are those of the original type.
#ifndef LOADLINE_MODELS_ONNX_WIDE_H_
#define LOADLINE_MODELS_ONNX_WIDE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "models/attributes.h"
#include "models/types.h"

namespace loadline::models::onnx_internal {

struct Wide {
  DType dtype = DType::kI64;
  Ints dims;
  std::vector<int64_t> ints;  // where !real()
  std::vector<double> reals;  // where real()

  bool real() const { return dtype == DType::kF32 || dtype == DType::kF64; }
  int64_t size() const {
    return static_cast<int64_t>(real() ? reals.size() : ints.size());
  }
};

// False for types that are not folded (f16, bf16).
bool CanWiden(DType dtype);
Wide Widen(const Tensor& tensor);
Tensor Narrow(const Wide& wide);

// Element i of the result is element index[i] of `from`.
Wide Pick(const Wide& from, Ints dims, const std::vector<int64_t>& index);

// For each element of shape `to`, its position in a tensor of shape `from`
// that broadcasts to `to`.
std::vector<int64_t> BroadcastIndex(const Ints& from, const Ints& to);

// Row-major positions of the elements of shape `dims` in a tensor with these
// strides, from `start`.
std::vector<int64_t> StridedIndex(const Ints& dims, const Ints& strides,
                                  int64_t start);
Ints RowMajorStrides(const Ints& dims);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_WIDE_H_
