// Optimizer states in 8 bits on the host, where a recipe cuts and clears them.
// models/ops/state_blocks.h has their layout.
#ifndef LOADLINE_TOOLS_PIPELINE_STATE_NUMBERS_H_
#define LOADLINE_TOOLS_PIPELINE_STATE_NUMBERS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

namespace loadline::tools {

// Whether the state's codes have a sign: all but those of second moments, by
// the name that AddOptimizer gives.
bool HasSign(const std::string& state);

// The first `elements` numbers of the blocks.
std::vector<float> NumbersOfState(absl::Span<const std::byte> blocks,
                                  int64_t elements, bool has_sign);

// The blocks of these numbers, as an update writes them.
std::vector<std::byte> StateOfNumbers(absl::Span<const float> numbers,
                                      bool has_sign);

// Sets elements below `elements` to zero; the others keep their numbers.
void ClearNumbers(int64_t elements, absl::FunctionRef<bool(int64_t)> clear,
                  absl::Span<std::byte> blocks);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_STATE_NUMBERS_H_
