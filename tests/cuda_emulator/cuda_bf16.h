// Replaces the toolkit's header of this name: bfloat16 as 16 bits, and its two
// conversions, rounding to nearest even.
#ifndef LOADLINE_TESTS_CUDA_EMULATOR_CUDA_BF16_H_
#define LOADLINE_TESTS_CUDA_EMULATOR_CUDA_BF16_H_

#include <bit>
#include <cstdint>

struct __nv_bfloat16 {
  uint16_t bits;
};

inline float __bfloat162float(__nv_bfloat16 x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
}
inline __nv_bfloat16 __float2bfloat16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if (x != x) return {0x7fff};
  const uint32_t half = 0x7fff + ((bits >> 16) & 1);
  return {static_cast<uint16_t>((bits + half) >> 16)};
}

#endif  // LOADLINE_TESTS_CUDA_EMULATOR_CUDA_BF16_H_
