// Element types, shapes and tensors: names, sizes and limits. The dimensions of
// a type made by MakeTensorType can be multiplied in any order without
// overflow, even with a zero among them. Tested in tests/models/types_test.cc.
#include "models/types.h"

#include <array>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "planner/base/check.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

struct DTypeFacts {
  DType dtype;
  absl::string_view name;
  int64_t bytes;
};

constexpr std::array<DTypeFacts, 9> kDTypes = {{{DType::kF32, "f32", 4},
                                                {DType::kF64, "f64", 8},
                                                {DType::kF16, "f16", 2},
                                                {DType::kBF16, "bf16", 2},
                                                {DType::kI64, "i64", 8},
                                                {DType::kI32, "i32", 4},
                                                {DType::kU8, "u8", 1},
                                                {DType::kI8, "i8", 1},
                                                {DType::kBool, "bool", 1}}};

}  // namespace

int64_t DTypeBytes(DType dtype) {
  return kDTypes[static_cast<size_t>(dtype)].bytes;
}

absl::string_view DTypeName(DType dtype) {
  return kDTypes[static_cast<size_t>(dtype)].name;
}

absl::StatusOr<DType> DTypeFromName(absl::string_view name) {
  for (const DTypeFacts& facts : kDTypes) {
    if (facts.name == name) return facts.dtype;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown element type \"", name, "\""));
}

int64_t TensorType::elements() const {
  int64_t product = 1;
  for (int64_t dim : dims) product *= dim;
  return product;
}

std::string TensorType::ToString() const {
  return absl::StrCat(DTypeName(dtype), "[", absl::StrJoin(dims, ","), "]");
}

absl::StatusOr<TensorType> MakeTensorType(DType dtype,
                                          std::vector<int64_t> dims) {
  int64_t bytes = DTypeBytes(dtype);
  for (int64_t dim : dims) {
    if (dim < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "negative dimension in shape [", absl::StrJoin(dims, ","), "]"));
    }
    // A zero counts as one, so that partial products fit as well.
    if (dim > 1 && bytes > std::numeric_limits<int64_t>::max() / dim) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape [", absl::StrJoin(dims, ","), "] of ",
                       DTypeName(dtype), " has more bytes than int64 holds"));
    }
    if (dim > 1) bytes *= dim;
  }
  return TensorType{dtype, std::move(dims)};
}

absl::StatusOr<TensorType> TensorTypeFromText(absl::string_view text) {
  const size_t open = text.find('[');
  if (open == absl::string_view::npos || text.back() != ']') {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is not a type such as f32[2,3]"));
  }
  LOADLINE_ASSIGN_OR_RETURN(DType dtype, DTypeFromName(text.substr(0, open)));
  const absl::string_view list = text.substr(open + 1, text.size() - open - 2);
  std::vector<int64_t> dims;
  if (list.empty()) return MakeTensorType(dtype, {});
  for (absl::string_view part : absl::StrSplit(list, ',')) {
    int64_t dim = 0;
    if (!absl::SimpleAtoi(part, &dim)) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", part, "\" is not a dimension"));
    }
    dims.push_back(dim);
  }
  return MakeTensorType(dtype, std::move(dims));
}

Tensor MakeTensor(TensorType type, const void* bytes) {
  auto data = std::make_shared<std::vector<std::byte>>(
      static_cast<size_t>(type.bytes()));
  if (!data->empty()) std::memcpy(data->data(), bytes, data->size());
  return Tensor{std::move(type), std::move(data)};
}

// Tensors of as many bytes share them while one exists: optimizer state is all
// zeros, and twice as large as the weights.
Tensor ZeroTensor(TensorType type) {
  static std::mutex& mutex = *new std::mutex;
  static auto& shared =
      *new std::map<int64_t, std::weak_ptr<const std::vector<std::byte>>>;
  const std::lock_guard<std::mutex> lock(mutex);
  auto& known = shared[type.bytes()];
  auto data = known.lock();
  if (data == nullptr) {
    data = std::make_shared<const std::vector<std::byte>>(
        static_cast<size_t>(type.bytes()));
    known = data;
  }
  return Tensor{std::move(type), std::move(data)};
}

Tensor ScalarTensor(float value) {
  return MakeTensor(TensorType{DType::kF32, {}}, &value);
}

Tensor Int64Tensor(absl::Span<const int64_t> values) {
  return MakeTensor(
      TensorType{DType::kI64, {static_cast<int64_t>(values.size())}},
      values.data());
}

}  // namespace loadline::models
