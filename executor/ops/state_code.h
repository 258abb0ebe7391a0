// The 8-bit codes of optimizer states: numbers of [0, 1], or [-1, 1], that are
// dense near the ends of a logarithmic scale as well as near 1. A state's
// number is that of its code times the scale of its block
// (models/ops/state_blocks.h).
//
// Dynamic tree quantization (Dettmers et al., 2022, section 1.3 and appendix):
// z zero bits, a one, and f bits of a fraction k are the number
//
//   10^-z (0.1 + 0.9 (k + 1/2) / 2^f)
//
// the middles of 2^f equal parts of a decade. Signed codes have a sign bit and
// 7 such bits, so f = 6 - z. Unsigned ones have one bit more for the fraction,
// f = 7 - z, and the same seven decades. Patterns without a one are 0 and 1.
//
// Bits are numbered here so that codes grow with their numbers and 0 is zero:
// unsigned 0 ... 255 are 0 ... 1; signed 0 ... 128 are 0 ... 1, and 128 + c is
// minus the number of c, 1 to 127. There is no -1.
#ifndef LOADLINE_EXECUTOR_OPS_STATE_CODE_H_
#define LOADLINE_EXECUTOR_OPS_STATE_CODE_H_

#include <cmath>
#include <cstdint>

#include "models/host_device.h"

namespace loadline::executor {

// `Code`: SignedCode for first moments and momentum, UnsignedCode for second
// moments, which are not negative.
struct UnsignedCode {
  static constexpr int kFractionBits = 7;  // of the largest decade
  static constexpr bool kSigned = false;
};
struct SignedCode {
  static constexpr int kFractionBits = 6;
  static constexpr bool kSigned = true;
};

inline constexpr int kStateCodes = 256;
inline constexpr int kStateDecades = 7;

// The least bit pattern, with its one, is that of code 1.
template <typename Code>
inline constexpr int kFirstPattern =
    1 << (Code::kFractionBits - kStateDecades + 1);
// The code of 1.
template <typename Code>
inline constexpr int kTopCode =
    (2 << Code::kFractionBits) - kFirstPattern<Code> + 1;

// The number of a code, by its definition.
template <typename Code>
LOADLINE_HOST_DEVICE inline float NumberOfCode(int code) {
  const int top = kTopCode<Code>;
  const bool negative = Code::kSigned && code > top;
  const int magnitude = negative ? code - top : code;
  if (magnitude == 0) return 0;
  if (magnitude == top) return 1;
  const int pattern = magnitude - 1 + kFirstPattern<Code>;
  int fraction_bits = Code::kFractionBits;
  double decade = 1;
  while (pattern >> fraction_bits == 0) {
    --fraction_bits;
    decade /= 10;
  }
  const int parts = 1 << fraction_bits;
  const double number = decade * (0.1 + 0.9 * (pattern - parts + 0.5) / parts);
  return static_cast<float>(negative ? -number : number);
}

// The code whose number is nearest to x, which is in [-1, 1]. But a second
// moment that is not zero never becomes zero: the update divides by its root,
// and a first moment of the same gradients is still there when their squares
// are too small for a code.
template <typename Code>
LOADLINE_HOST_DEVICE inline int CodeOfNumber(float x) {
  constexpr int kBits = Code::kFractionBits;
  const float size = fabsf(x);
  // Scales size up to the decade of 0.1 to 1. The limit between two decades is
  // the middle of their neighbouring numbers, 0.1 (1 + 1.8 / 2^f).
  float scaled = size;
  float parts = 1 << kBits;
  bool below = true;
  for (int z = 0; z + 1 < kStateDecades; ++z) {
    below =
        below && scaled <= 0.1f + 0.18f / static_cast<float>(1 << (kBits - z));
    scaled = below ? scaled * 10 : scaled;
    parts = below ? parts * 0.5f : parts;
  }
  const float fraction = (scaled - 0.1f) * (parts * (1 / 0.9f));
  const float inside = fraction > 0 ? fraction : 0;  // NaN: 0
  const float last = parts - 1;
  int code = static_cast<int>(parts + (inside < last ? inside : last)) -
             (kFirstPattern<Code> - 1);
  constexpr float kLastPart = 0.45f / (1 << kBits);  // half of it
  constexpr float kLeast =
      1e-6f * (0.1f + 0.45f / (1 << (kBits - kStateDecades + 1)));
  // Plain selections, which vectorize; only positive numbers reach 1.
  const bool negative = Code::kSigned && x < 0;
  const int sign = negative ? kTopCode<Code> : 0;
  const float top = negative ? 2 : 1 - kLastPart / 2;
  code = size > top ? kTopCode<Code> : code + sign;
  const float zero = Code::kSigned ? kLeast / 2 : 0;
  return size > zero ? code : 0;
}

// x as a share of its block's scale, the largest absolute value.
LOADLINE_HOST_DEVICE inline float ShareOfScale(float x, float scale) {
  return scale > 0 ? x / scale : 0;
}

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_OPS_STATE_CODE_H_
