// Converts arrays into columns of the graph's types with a common number of
// rows. Tested in tests/executor/train/data_test.cc.
#include "executor/train/data.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "executor/train/check_indices.h"
#include "models/micro_batches.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {
namespace {

using models::DType;

float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 31;
  uint32_t mantissa = half & 1023;
  uint32_t bits = 0;
  if (exponent == 31) {
    bits = sign | 0x7F800000u | (mantissa << 13);
  } else if (exponent != 0) {
    bits = sign | ((exponent + 112) << 23) | (mantissa << 13);
  } else {
    // Subnormal: mantissa / 2^24, exact in f32.
    const float value = static_cast<float>(mantissa) / 16777216.0f;
    return sign != 0 ? -value : value;
  }
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

template <typename From, typename To>
bool ConvertAll(const std::vector<std::byte>& from,
                std::vector<std::byte>* to) {
  const size_t count = from.size() / sizeof(From);
  to->resize(count * sizeof(To));
  for (size_t i = 0; i < count; ++i) {
    From x;
    std::memcpy(&x, from.data() + i * sizeof(From), sizeof(From));
    To y;
    if constexpr (std::is_same_v<From, uint16_t> && std::is_same_v<To, float>) {
      y = HalfToFloat(x);
    } else {
      // An int8 is a number here. NOLINTNEXTLINE(bugprone-signed-char-misuse)
      y = static_cast<To>(x);
      if constexpr (std::is_integral_v<To>) {
        if (static_cast<From>(y) != x) return false;
      }
    }
    std::memcpy(to->data() + i * sizeof(To), &y, sizeof(To));
  }
  return true;
}

// Converts the array's bytes to `wanted`. False: a number does not fit.
// NotFound: conversion not supported.
absl::StatusOr<bool> Convert(const NpyArray& array, DType wanted,
                             std::vector<std::byte>* to) {
  const auto& from = array.data;
  if (array.dtype == DType::kF64 && wanted == DType::kF32) {
    return ConvertAll<double, float>(from, to);
  }
  if (array.dtype == DType::kF16 && wanted == DType::kF32) {
    return ConvertAll<uint16_t, float>(from, to);
  }
  if (wanted == DType::kI64) {
    if (array.dtype == DType::kI32)
      return ConvertAll<int32_t, int64_t>(from, to);
    if (array.dtype == DType::kI8) return ConvertAll<int8_t, int64_t>(from, to);
    if (array.dtype == DType::kU8 || array.dtype == DType::kBool) {
      return ConvertAll<uint8_t, int64_t>(from, to);
    }
  }
  if (wanted == DType::kI32) {
    if (array.dtype == DType::kI64)
      return ConvertAll<int64_t, int32_t>(from, to);
    if (array.dtype == DType::kI8) return ConvertAll<int8_t, int32_t>(from, to);
    if (array.dtype == DType::kU8 || array.dtype == DType::kBool) {
      return ConvertAll<uint8_t, int32_t>(from, to);
    }
  }
  return absl::NotFoundError("no conversion");
}

std::string TypeText(DType dtype, const std::vector<int64_t>& shape) {
  return models::TensorType{dtype, shape}.ToString();
}

absl::StatusOr<Column> MakeColumn(NpyArray array, const models::Value& input,
                                  int64_t examples) {
  std::vector<int64_t> expected = input.type.dims;
  if (expected.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input '", input.name, "' is a scalar; data needs a batch axis"));
  }
  expected[0] = examples;
  if (array.shape != expected) {
    return absl::InvalidArgumentError(absl::StrCat(
        "array '", input.name, "': expected ",
        TypeText(input.type.dtype, expected), " (first axis: examples), found ",
        TypeText(array.dtype, array.shape)));
  }
  Column column;
  column.name = input.name;
  column.row_bytes =
      input.type.bytes() / std::max<int64_t>(input.type.dims[0], 1);
  if (array.dtype == input.type.dtype) {
    column.data = std::move(array.data);
    return column;
  }
  const std::string wanted(models::DTypeName(input.type.dtype));
  const absl::StatusOr<bool> fits =
      Convert(array, input.type.dtype, &column.data);
  if (!fits.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("array '", input.name, "': expected ", wanted, ", found ",
                     std::string(models::DTypeName(array.dtype)),
                     "; convert it with astype before saving"));
  }
  if (!*fits) {
    return absl::InvalidArgumentError(absl::StrCat(
        "array '", input.name, "': a number does not fit ", wanted));
  }
  return column;
}

}  // namespace

absl::StatusOr<DataSet> MakeDataSet(std::vector<NpyArray> arrays,
                                    const models::Graph& graph) {
  const auto parts = static_cast<size_t>(models::MicroBatchesOf(graph));
  const size_t inputs = graph.inputs.size() / parts;
  if (arrays.size() != inputs || arrays.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a graph of ", inputs, " inputs was given ", arrays.size(), " arrays"));
  }
  if (arrays[0].shape.empty() || arrays[0].shape[0] == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "array '", graph.value(graph.inputs[0]).name, "' holds no examples"));
  }
  DataSet data;
  data.examples = arrays[0].shape[0];
  for (size_t i = 0; i < arrays.size(); ++i) {
    LOADLINE_ASSIGN_OR_RETURN(
        Column column,
        MakeColumn(std::move(arrays[i]), graph.value(graph.inputs[i * parts]),
                   data.examples));
    data.columns.push_back(std::move(column));
  }
  LOADLINE_RETURN_IF_ERROR(CheckIndices(data, graph));
  return data;
}

std::optional<int64_t> BatchOf(const models::Graph& graph) {
  if (graph.inputs.empty()) return std::nullopt;
  const models::TensorType& type = graph.value(graph.inputs[0]).type;
  if (type.dims.empty()) return std::nullopt;
  return type.dims[0] * models::MicroBatchesOf(graph);
}

absl::StatusOr<DataSet> LoadData(const std::string& npz_path,
                                 const models::Graph& graph) {
  std::vector<std::string> names;
  const auto parts = static_cast<size_t>(models::MicroBatchesOf(graph));
  for (size_t i = 0; i < graph.inputs.size(); i += parts) {
    names.push_back(graph.value(graph.inputs[i]).name);
  }
  LOADLINE_ASSIGN_OR_RETURN(std::vector<NpyArray> arrays,
                            ReadNpz(npz_path, names));
  absl::StatusOr<DataSet> data = MakeDataSet(std::move(arrays), graph);
  if (!data.ok()) {
    return absl::Status(
        data.status().code(),
        absl::StrCat(npz_path, ": ", std::string(data.status().message())));
  }
  return data;
}

}  // namespace loadline::executor
