// Tested in tests/passes/cut_batch_test.cc.
#include "passes/example_positions.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "models/ops/cut_axis.h"

namespace loadline::passes {
namespace {

using models::Node;
using models::TensorType;
using models::ValueId;
using models::ValueKind;

// By how much each of `count` elements of type T is larger in `next` than in
// `first`; none if that differs.
template <typename T>
std::optional<int64_t> CommonShift(const std::byte* first,
                                   const std::byte* next, size_t count) {
  std::optional<int64_t> shift;
  for (size_t i = 0; i < count; ++i) {
    T a, b;
    std::memcpy(&a, first + i * sizeof(T), sizeof(T));
    std::memcpy(&b, next + i * sizeof(T), sizeof(T));
    int64_t own = 0;
    if (__builtin_sub_overflow(b, a, &own)) return std::nullopt;
    if (shift.value_or(own) != own) return std::nullopt;
    shift = own;
  }
  return shift;
}

std::optional<int64_t> ShiftBetween(models::DType dtype, const std::byte* first,
                                    const std::byte* next, size_t bytes) {
  if (std::memcmp(first, next, bytes) == 0) return 0;
  switch (dtype) {
    case models::DType::kI64:
      return CommonShift<int64_t>(first, next, bytes / sizeof(int64_t));
    case models::DType::kI32:
      return CommonShift<int32_t>(first, next, bytes / sizeof(int32_t));
    default:
      return std::nullopt;
  }
}

class SignProof {
 public:
  SignProof(const models::Graph& graph, const Makers& makers)
      : graph_(graph), makers_(makers) {}

  bool OfPositions(ValueId positions, int64_t rows) const {
    if (IsWithin(graph_.value(positions), 0)) return true;
    const Node* node = MakerOf(positions);
    if (node == nullptr) return false;
    if (MovesElements(*node)) return OfPositions(node->inputs[0], rows);
    if (node->op != "Where") return IsNotNegative(positions, models::kNoValue);
    return IsWithin(graph_.value(node->inputs[2]), rows) &&
           IsNotNegative(node->inputs[1], node->inputs[0]);
  }

 private:
  // Whether no element is negative where `condition`, if any, holds: a sum of
  // products of constants, of values that the condition compares with 0, and
  // of those that Clip keeps from falling below 0.
  bool IsNotNegative(ValueId id, ValueId condition) const {
    if (IsWithin(graph_.value(id), 0) || Implies(condition, id)) return true;
    const Node* node = MakerOf(id);
    if (node == nullptr) return false;
    if (MovesElements(*node) || node->op == "Cast") {
      return IsNotNegative(node->inputs[0], condition);
    }
    if (node->op == "Clip") return node->attributes.Float("min", -1) >= 0;
    return (node->op == "Add" || node->op == "Mul") &&
           IsNotNegative(node->inputs[0], condition) &&
           IsNotNegative(node->inputs[1], condition);
  }

  // Whether `condition` has `id >= 0`, or a larger bound, among what it joins.
  bool Implies(ValueId condition, ValueId id) const {
    const Node* node = MakerOf(condition);
    if (node == nullptr) return false;
    if (node->op == "And") {
      return Implies(node->inputs[0], id) || Implies(node->inputs[1], id);
    }
    return node->op == "GreaterOrEqual" && node->inputs[0] == id &&
           IsWithin(graph_.value(node->inputs[1]), 0);
  }

  const Node* MakerOf(ValueId id) const {
    const auto maker = makers_.find(id);
    return maker == makers_.end() ? nullptr : &maker->second;
  }

  const models::Graph& graph_;
  const Makers& makers_;
};

}  // namespace

absl::StatusOr<PartOfConstant> CommonPart(const models::Value& value,
                                          int64_t axis, int64_t parts) {
  const models::Tensor& whole = *value.initial;
  const TensorType type = models::PartOf(whole.type, axis, parts);
  const auto rows = static_cast<size_t>(models::ElementsBefore(type, axis));
  const auto bytes = rows == 0 ? 0 : static_cast<size_t>(type.bytes()) / rows;
  std::vector<std::byte> part(rows * bytes);
  std::optional<int64_t> shift;
  for (size_t row = 0; row < rows && bytes > 0; ++row) {
    const std::byte* first =
        whole.data->data() + row * bytes * static_cast<size_t>(parts);
    std::memcpy(part.data() + row * bytes, first, bytes);
    for (int64_t j = 1; j < parts; ++j) {
      const std::byte* last = first + static_cast<size_t>(j - 1) * bytes;
      const std::optional<int64_t> own =
          ShiftBetween(type.dtype, last, last + bytes, bytes);
      if (!own.has_value() || shift.value_or(*own) != *own) {
        return absl::FailedPreconditionError(
            absl::StrCat("'", value.name, "' ", value.type.ToString(),
                         " has other contents for other examples"));
      }
      shift = own;
    }
  }
  return PartOfConstant{models::MakeTensor(type, part.data()),
                        shift.value_or(0)};
}

bool MovesElements(const Node& node) {
  return node.op == "Reshape" || node.op == "Expand" ||
         node.op == "Transpose" || node.op == "Slice";
}

bool IsWithin(const models::Value& value, int64_t least, int64_t most) {
  if (value.kind != ValueKind::kConstant) return false;
  const auto all = [&](auto elements) {
    return std::all_of(elements.begin(), elements.end(),
                       [&](int64_t x) { return x >= least && x <= most; });
  };
  switch (value.type.dtype) {
    case models::DType::kI64:
      return all(value.initial->as<int64_t>());
    case models::DType::kI32:
      return all(value.initial->as<int32_t>());
    default:
      return false;
  }
}

bool AreNeverNegative(const models::Graph& graph, const Makers& makers,
                      ValueId positions, int64_t rows) {
  return SignProof(graph, makers).OfPositions(positions, rows);
}

}  // namespace loadline::passes
