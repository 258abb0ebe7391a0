#include "passes/position_shift.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "models/types.h"
#include "passes/example_positions.h"

namespace loadline::passes {
namespace {

using models::ValueId;

// The only element of a constant.
std::optional<int64_t> OnlyElement(const models::Value& value) {
  if (value.kind != models::ValueKind::kConstant ||
      value.type.dtype != models::DType::kI64 || value.type.elements() != 1) {
    return std::nullopt;
  }
  return value.initial->as<int64_t>()[0];
}

// Whether it is one number that is no position, in the whole or in a part.
bool IsBeyondPositions(const CutGraph& cut, ValueId id, int64_t shift) {
  const std::optional<int64_t> number = OnlyElement(cut.graph().value(id));
  return cut.Shift(id) == 0 && number.has_value() && shift > 0 &&
         *number / shift >= cut.parts();
}

// `shifts`: of the inputs. None: they have no common one.
std::optional<int64_t> ShiftOfArithmetic(const CutGraph& cut,
                                         const models::Node& node,
                                         const std::vector<ValueId>& inputs,
                                         const std::vector<int64_t>& shifts) {
  int64_t shift = 0;
  if (node.op == "Add" &&
      !__builtin_add_overflow(shifts[0], shifts[1], &shift)) {
    return shift;
  }
  if (node.op == "Sub" &&
      !__builtin_sub_overflow(shifts[0], shifts[1], &shift)) {
    return shift;
  }
  if (node.op == "Mul") {
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const auto factor = OnlyElement(cut.graph().value(inputs[1 - i]));
      if (shifts[1 - i] == 0 && factor.has_value() &&
          !__builtin_mul_overflow(shifts[i], *factor, &shift)) {
        return shift;
      }
    }
  }
  if (node.op == "Where" && shifts[0] == 0) {
    if (shifts[1] == shifts[2]) return shifts[1];
    if (IsBeyondPositions(cut, inputs[1], shifts[2])) return shifts[2];
    if (IsBeyondPositions(cut, inputs[2], shifts[1])) return shifts[1];
  }
  return std::nullopt;
}

}  // namespace

absl::Status RefuseToCut(const models::Node& node, absl::string_view why) {
  return absl::FailedPreconditionError(
      absl::StrCat(node.op, " '", node.name, "' ", why));
}

absl::StatusOr<int64_t> ShiftOfResults(const CutGraph& cut,
                                       const models::Node& node,
                                       const std::vector<ValueId>& inputs,
                                       int64_t position_shift) {
  std::vector<int64_t> shifts;
  for (ValueId id : inputs) shifts.push_back(cut.Shift(id));
  if (position_shift != 0) {
    if (shifts[1] != position_shift) {
      return RefuseToCut(node, "may read other examples");
    }
    shifts[1] = 0;
  }
  if (std::all_of(shifts.begin(), shifts.end(),
                  [](int64_t shift) { return shift == 0; })) {
    return 0;
  }
  const auto shift = ShiftOfArithmetic(cut, node, inputs, shifts);
  if (shift.has_value()) return *shift;
  if (MovesElements(node)) return shifts[0];
  return RefuseToCut(node, "computes with numbers of examples");
}

}  // namespace loadline::passes
