// Tested in tests/executor/train/check_finite_test.cc.
#include "executor/train/check_finite.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "models/ops/state_blocks.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {
namespace {

// Infinities and NaNs are the numbers whose exponent bits are all ones.
template <typename Bits>
bool AllFinite(absl::Span<const std::byte> bytes, Bits exponent) {
  for (size_t i = 0; i + sizeof(Bits) <= bytes.size(); i += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + i, sizeof(Bits));
    if ((bits & exponent) == exponent) return false;
  }
  return true;
}

// States in 8 bits have a float at the beginning of each block.
bool ScalesAreFinite(absl::Span<const std::byte> bytes) {
  for (; !bytes.empty(); bytes.remove_prefix(models::kStateBlockBytes)) {
    if (!AllFinite<uint32_t>(bytes.first(models::kStateScaleBytes),
                             0x7f800000)) {
      return false;
    }
  }
  return true;
}

bool AllFinite(const models::TensorType& type,
               absl::Span<const std::byte> bytes) {
  if (models::IsStateBlocks(type)) return ScalesAreFinite(bytes);
  switch (type.dtype) {
    case models::DType::kF64:
      return AllFinite<uint64_t>(bytes, uint64_t{0x7ff} << 52);
    case models::DType::kF32:
      return AllFinite<uint32_t>(bytes, 0x7f800000);
    case models::DType::kBF16:
      return AllFinite<uint16_t>(bytes, 0x7f80);
    case models::DType::kF16:
      return AllFinite<uint16_t>(bytes, 0x7c00);
    default:
      return true;  // integers
  }
}

}  // namespace

std::optional<InputRow> FirstNotFinite(
    const models::Graph& graph, absl::Span<const std::byte* const> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const models::TensorType& type = graph.value(graph.inputs[i]).type;
    const int64_t rows = type.dims.empty() ? 1 : type.dims[0];
    if (rows == 0) continue;
    const int64_t row_bytes = type.bytes() / rows;
    for (int64_t row = 0; row < rows; ++row) {
      if (!AllFinite(type, {inputs[i] + row * row_bytes,
                            static_cast<size_t>(row_bytes)})) {
        return InputRow{.input = i, .row = row, .rows = rows};
      }
    }
  }
  return std::nullopt;
}

absl::Status CheckFinite(Program& program) {
  std::vector<std::byte> buffer;
  for (models::ValueId id : program.saved_values()) {
    const models::Value& value = program.graph().value(id);
    buffer.resize(static_cast<size_t>(value.type.bytes()));
    LOADLINE_RETURN_IF_ERROR(
        program.ReadPersistent(value.name, absl::MakeSpan(buffer)));
    if (!AllFinite(value.type, buffer)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", value.name, "' holds an infinity or NaN"));
    }
  }
  return absl::OkStatus();
}

}  // namespace loadline::executor
