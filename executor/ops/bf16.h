// bfloat16: the upper half of a float. Arithmetic is done in float; only stored
// numbers are rounded, to nearest with ties to even, identically on every
// device.
#ifndef LOADLINE_EXECUTOR_OPS_BF16_H_
#define LOADLINE_EXECUTOR_OPS_BF16_H_

#include <bit>
#include <cstdint>

namespace loadline::executor {

struct Bf16 {
  uint16_t bits = 0;

  Bf16() = default;
  // Implicit conversions, so that a kernel written for T computes in float.
  Bf16(float x) {  // NOLINT(google-explicit-constructor)
    const uint32_t word = std::bit_cast<uint32_t>(x);
    const uint32_t rounded = (word + 0x7fffu + ((word >> 16) & 1u)) >> 16;
    // Keep one mantissa bit of a NaN; its upper half alone could be infinity.
    const uint32_t nan = (word >> 16) | 0x40u;
    bits = static_cast<uint16_t>((word & 0x7fffffffu) > 0x7f800000u ? nan
                                                                    : rounded);
  }
  operator float() const {  // NOLINT(google-explicit-constructor)
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_OPS_BF16_H_
