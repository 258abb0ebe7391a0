// Reads and writes a block of an optimizer state in 8 bits
// (models/ops/state_blocks.h).
#ifndef LOADLINE_EXECUTOR_CPU_STATE_BLOCKS_H_
#define LOADLINE_EXECUTOR_CPU_STATE_BLOCKS_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "executor/ops/state_code.h"
#include "models/ops/state_blocks.h"

namespace loadline::executor::cpu {

using models::kStateBlockElements;

// The number of each code.
template <typename Code>
const float* NumbersOfCodes() {
  static const auto numbers = [] {
    std::array<float, kStateCodes> all;
    for (int code = 0; code < kStateCodes; ++code) {
      all[static_cast<size_t>(code)] = NumberOfCode<Code>(code);
    }
    return all;
  }();
  return numbers.data();
}

// Where the block of element `at` begins, a multiple of kStateBlockElements.
inline int64_t StateBlockOffset(int64_t at) {
  return at / kStateBlockElements * models::kStateBlockBytes;
}

// The numbers of the block of element `at`.
template <typename Code>
void ReadStateBlock(const std::byte* state, int64_t at, float* numbers) {
  const std::byte* block = state + StateBlockOffset(at);
  float scale;
  std::memcpy(&scale, block, sizeof(scale));
  uint8_t codes[kStateBlockElements];
  std::memcpy(codes, block + models::kStateScaleBytes, sizeof(codes));
  const float* of_code = NumbersOfCodes<Code>();
#pragma omp simd
  for (int64_t i = 0; i < kStateBlockElements; ++i) {
    numbers[i] = of_code[codes[i]] * scale;
  }
}

// Writes `n` numbers as the block of element `at`; those after them become 0.
template <typename Code>
void WriteStateBlock(float* numbers, int64_t n, int64_t at, std::byte* state) {
  std::fill(numbers + n, numbers + kStateBlockElements, 0.0f);
  float scale = 0;
#pragma omp simd reduction(max : scale)
  for (int64_t i = 0; i < kStateBlockElements; ++i) {
    const float size = std::fabs(numbers[i]);
    scale = size > scale ? size : scale;
  }
  uint8_t codes[kStateBlockElements];
#pragma omp simd
  for (int64_t i = 0; i < kStateBlockElements; ++i) {
    codes[i] = static_cast<uint8_t>(
        CodeOfNumber<Code>(ShareOfScale(numbers[i], scale)));
  }
  std::byte* block = state + StateBlockOffset(at);
  std::memcpy(block, &scale, sizeof(scale));
  std::memcpy(block + models::kStateScaleBytes, codes, sizeof(codes));
}

}  // namespace loadline::executor::cpu

#endif  // LOADLINE_EXECUTOR_CPU_STATE_BLOCKS_H_
