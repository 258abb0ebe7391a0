// The formulas are those of the update (executor/ops/state_code.h), one number
// at a time: this happens between phases. Tested by
// tests/tools/pipeline/state_numbers_test.cc.
#include "tools/pipeline/state_numbers.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/match.h"
#include "executor/ops/state_code.h"
#include "models/ops/state_blocks.h"

namespace loadline::tools {
namespace {

using executor::SignedCode;
using executor::UnsignedCode;
using models::kStateBlockBytes;
using models::kStateBlockElements;
using models::kStateScaleBytes;

// The position of a number's code.
size_t CodeAt(int64_t element) {
  return static_cast<size_t>(element / kStateBlockElements * kStateBlockBytes +
                             kStateScaleBytes + element % kStateBlockElements);
}

size_t ScaleAt(int64_t element) {
  return static_cast<size_t>(element / kStateBlockElements * kStateBlockBytes);
}

}  // namespace

bool HasSign(const std::string& state) {
  return !absl::EndsWith(state, ".exp_avg_sq");
}

std::vector<float> NumbersOfState(absl::Span<const std::byte> blocks,
                                  int64_t elements, bool has_sign) {
  std::vector<float> numbers(static_cast<size_t>(elements));
  for (int64_t e = 0; e < elements; ++e) {
    float scale = 0;
    std::memcpy(&scale, blocks.data() + ScaleAt(e), sizeof(scale));
    const int code = std::to_integer<int>(blocks[CodeAt(e)]);
    numbers[static_cast<size_t>(e)] =
        scale * (has_sign ? executor::NumberOfCode<SignedCode>(code)
                          : executor::NumberOfCode<UnsignedCode>(code));
  }
  return numbers;
}

std::vector<std::byte> StateOfNumbers(absl::Span<const float> numbers,
                                      bool has_sign) {
  const auto elements = static_cast<int64_t>(numbers.size());
  std::vector<std::byte> blocks(
      static_cast<size_t>(models::StateBlocksType(elements).bytes()));
  for (int64_t begin = 0; begin < elements; begin += kStateBlockElements) {
    const int64_t end = std::min(elements, begin + kStateBlockElements);
    float scale = 0;
    for (int64_t e = begin; e < end; ++e) {
      scale = std::max(scale, std::abs(numbers[static_cast<size_t>(e)]));
    }
    std::memcpy(blocks.data() + ScaleAt(begin), &scale, sizeof(scale));
    for (int64_t e = begin; e < end; ++e) {
      const float share =
          executor::ShareOfScale(numbers[static_cast<size_t>(e)], scale);
      const int code = has_sign ? executor::CodeOfNumber<SignedCode>(share)
                                : executor::CodeOfNumber<UnsignedCode>(share);
      blocks[CodeAt(e)] = static_cast<std::byte>(code);
    }
  }
  return blocks;
}

void ClearNumbers(int64_t elements, absl::FunctionRef<bool(int64_t)> clear,
                  absl::Span<std::byte> blocks) {
  for (int64_t e = 0; e < elements; ++e) {
    if (clear(e)) blocks[CodeAt(e)] = std::byte{0};
  }
}

}  // namespace loadline::tools
