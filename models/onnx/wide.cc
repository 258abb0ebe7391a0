// Every operator that only moves elements is an index vector passed to Pick.
// Tested in tests/models/onnx_fold_test.cc.
#include "models/onnx/wide.h"

#include <utility>

#include "planner/base/check.h"

namespace loadline::models::onnx_internal {
namespace {

template <typename T>
void Append(const Tensor& tensor, std::vector<int64_t>* to) {
  for (T v : tensor.as<T>()) to->push_back(static_cast<int64_t>(v));
}

template <typename T, typename From>
Tensor Build(const Wide& wide, const std::vector<From>& from) {
  std::vector<T> values;
  values.reserve(from.size());
  for (From v : from) values.push_back(static_cast<T>(v));
  return MakeTensor({wide.dtype, wide.dims}, values.data());
}

}  // namespace

bool CanWiden(DType dtype) {
  return dtype != DType::kF16 && dtype != DType::kBF16;
}

Wide Widen(const Tensor& tensor) {
  Wide wide{tensor.type.dtype, tensor.type.dims, {}, {}};
  switch (tensor.type.dtype) {
    case DType::kF32:
      for (float v : tensor.as<float>()) wide.reals.push_back(v);
      break;
    case DType::kF64:
      for (double v : tensor.as<double>()) wide.reals.push_back(v);
      break;
    case DType::kI64:
      Append<int64_t>(tensor, &wide.ints);
      break;
    case DType::kI32:
      Append<int32_t>(tensor, &wide.ints);
      break;
    case DType::kI8:
      Append<int8_t>(tensor, &wide.ints);
      break;
    case DType::kU8:
    case DType::kBool:
      Append<uint8_t>(tensor, &wide.ints);
      break;
    case DType::kF16:
    case DType::kBF16:
      LOADLINE_CHECK(false);
  }
  return wide;
}

Tensor Narrow(const Wide& wide) {
  switch (wide.dtype) {
    case DType::kF32:
      return Build<float>(wide, wide.reals);
    case DType::kF64:
      return Build<double>(wide, wide.reals);
    case DType::kI64:
      return Build<int64_t>(wide, wide.ints);
    case DType::kI32:
      return Build<int32_t>(wide, wide.ints);
    case DType::kI8:
      return Build<int8_t>(wide, wide.ints);
    default:
      return Build<uint8_t>(wide, wide.ints);
  }
}

Wide Pick(const Wide& from, Ints dims, const std::vector<int64_t>& index) {
  Wide result{from.dtype, std::move(dims), {}, {}};
  if (from.real()) {
    result.reals.reserve(index.size());
    for (int64_t i : index) {
      result.reals.push_back(from.reals[static_cast<size_t>(i)]);
    }
  } else {
    result.ints.reserve(index.size());
    for (int64_t i : index) {
      result.ints.push_back(from.ints[static_cast<size_t>(i)]);
    }
  }
  return result;
}

Ints RowMajorStrides(const Ints& dims) {
  Ints strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * dims[i];
  }
  return strides;
}

std::vector<int64_t> StridedIndex(const Ints& dims, const Ints& strides,
                                  int64_t start) {
  int64_t count = 1;
  for (int64_t d : dims) count *= d;
  std::vector<int64_t> index;
  index.reserve(static_cast<size_t>(count));
  Ints at(dims.size(), 0);
  int64_t position = start;
  for (int64_t n = 0; n < count; ++n) {
    index.push_back(position);
    for (size_t axis = dims.size(); axis-- > 0;) {
      position += strides[axis];
      if (++at[axis] < dims[axis]) break;
      position -= strides[axis] * dims[axis];
      at[axis] = 0;
    }
  }
  return index;
}

std::vector<int64_t> BroadcastIndex(const Ints& from, const Ints& to) {
  const Ints own = RowMajorStrides(from);
  Ints strides(to.size(), 0);
  const size_t shift = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i) {
    strides[shift + i] = from[i] == 1 ? 0 : own[i];
  }
  return StridedIndex(to, strides, 0);
}

}  // namespace loadline::models::onnx_internal
