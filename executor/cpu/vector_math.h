// Elementary functions that compilers turn into vector code.
//
// libm's functions are scalar calls, tens of times slower in an elementwise
// loop. These have no branches: argument reduction, one polynomial, selects, so
// a plain loop over them vectorizes. Errors against the exact value, measured
// by tests/executor/cpu/kernel_math_test.cc over the whole range: Exp 1.5 ulp,
// Expm1, Log1p and Tanh 3 ulp, Sigmoid 3 ulp, Log 1.5 ulp, Erf 2 ulp. NaN gives
// NaN; infinities give the limits.
#ifndef LOADLINE_EXECUTOR_CPU_VECTOR_MATH_H_
#define LOADLINE_EXECUTOR_CPU_VECTOR_MATH_H_

#include <bit>
#include <cstdint>
#include <limits>

namespace loadline::executor::cpu {

namespace vector_math_internal {

// Adding and subtracting 1.5 * 2^23 rounds to the nearest integer, and leaves
// that integer in the low bits of the sum.
inline constexpr float kRounder = 12582912.0f;
inline constexpr float kLog2E = 1.44269504088896341f;
// ln 2 in two parts: the first has trailing zeros, so n * kLn2High is exact.
inline constexpr float kLn2High = 0.693145751953125f;
inline constexpr float kLn2Low = 1.42860677e-6f;

// 2^n for n in [-126, 127].
inline float PowerOfTwo(int32_t n) {
  return std::bit_cast<float>(static_cast<uint32_t>(n + 127) << 23);
}

// x = n ln 2 + r with |r| <= ln 2 / 2, and e^r - 1 by its Taylor series.
struct Reduced {
  int32_t n;
  float expm1_r;
};
inline Reduced Reduce(float x) {
  const float sum = x * kLog2E + kRounder;
  const float rounded = sum - kRounder;
  const int32_t n = static_cast<int32_t>(std::bit_cast<uint32_t>(sum) -
                                         std::bit_cast<uint32_t>(kRounder));
  const float r = (x - rounded * kLn2High) - rounded * kLn2Low;
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  return {n, r + (r * r) * p};
}

}  // namespace vector_math_internal

inline float Exp(float x) {
  using namespace vector_math_internal;  // NOLINT: a function's own scope
  // Beyond these the result is 0 or infinity; NaN passes both comparisons.
  const float low = x < -104.0f ? -104.0f : x;
  const float clamped = low > 89.0f ? 89.0f : low;
  const Reduced e = Reduce(clamped);
  // Two factors, because 2^n alone overflows before the result does. For NaN, n
  // is arbitrary: the mask keeps the factors defined.
  const int32_t half = (e.n >> 1) & 0xff;
  const int32_t first = (half ^ 0x80) - 0x80;  // sign of the low eight bits
  const int32_t rest = e.n - (e.n >> 1);
  const int32_t second = ((rest & 0xff) ^ 0x80) - 0x80;
  return ((1.0f + e.expm1_r) * PowerOfTwo(first)) * PowerOfTwo(second);
}

// e^x - 1 for x in [0, 64] only.
inline float Expm1Positive(float x) {
  using namespace vector_math_internal;  // NOLINT
  const Reduced e = Reduce(x);
  const float scale = PowerOfTwo(e.n & 0x7f);
  return scale * e.expm1_r + (scale - 1.0f);
}

// e^x - 1 for x <= 0.
inline float Expm1OfNegative(float x) {
  using namespace vector_math_internal;  // NOLINT
  // Below -30 the result is -1; NaN passes the comparison.
  const Reduced e = Reduce(x < -30.0f ? -30.0f : x);
  // For NaN, n is arbitrary: the mask keeps the factor defined.
  const uint32_t n = (0u - static_cast<uint32_t>(e.n)) & 0x3fu;
  const float scale = PowerOfTwo(-static_cast<int32_t>(n));
  return scale * e.expm1_r + (scale - 1.0f);
}

// log(1 + x) for x in [0, 1], as 2 atanh(x / (2 + x)) by its series.
inline float Log1pOfUnit(float x) {
  const float s = x / (2.0f + x);
  const float z = s * s;
  float p = 1.0f / 17;
  p = p * z + 1.0f / 15;
  p = p * z + 1.0f / 13;
  p = p * z + 1.0f / 11;
  p = p * z + 1.0f / 9;
  p = p * z + 1.0f / 7;
  p = p * z + 1.0f / 5;
  p = p * z + 1.0f / 3;
  return 2.0f * (s + s * (z * p));
}

inline float Tanh(float x) {
  const float magnitude = x < 0.0f ? -x : x;
  const float clamped = magnitude > 10.0f ? 10.0f : magnitude;
  const float t = Expm1Positive(2.0f * clamped);
  const float y = t / (t + 2.0f);
  const uint32_t sign = std::bit_cast<uint32_t>(x) & 0x80000000u;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(y) | sign);
}

inline float Sigmoid(float x) { return 1.0f / (1.0f + Exp(-x)); }

// log(m 2^k) = k ln 2 + log(m), m in [sqrt(1/2), sqrt(2)), and with f = m - 1,
// s = f / (2 + f): log(m) = f - (f^2/2 - s (f^2/2 + R)), R the tail of the
// series of 2 atanh(s).
inline float Log(float x) {
  using namespace vector_math_internal;  // NOLINT
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const bool tiny = x < std::numeric_limits<float>::min();
  const float scaled = tiny ? x * 8388608.0f : x;
  const uint32_t bits = std::bit_cast<uint32_t>(scaled);
  const uint32_t shifted = bits - 0x3f3504f3u;  // sqrt(1/2)
  const int32_t k = static_cast<int32_t>(shifted) >> 23;
  const float m = std::bit_cast<float>((shifted & 0x007fffffu) + 0x3f3504f3u);
  const float exponent = static_cast<float>(k) - (tiny ? 23.0f : 0.0f);
  const float f = m - 1.0f;
  const float s = f / (2.0f + f);
  const float z = s * s;
  float r = 2.0f / 11;
  r = r * z + 2.0f / 9;
  r = r * z + 2.0f / 7;
  r = r * z + 2.0f / 5;
  r = r * z + 2.0f / 3;
  r = r * z;
  const float half_square = 0.5f * f * f;
  const float y =
      exponent * kLn2High -
      ((half_square - (s * (half_square + r) + exponent * kLn2Low)) - f);
  const float finite = x == 0.0f ? -kInfinity : y;
  const float positive =
      x < 0.0f ? std::numeric_limits<float>::quiet_NaN() : finite;
  // The logarithm of infinity is infinity, and of NaN is NaN.
  return x < kInfinity ? positive : x;
}

// Below 0.9 x times a polynomial in x^2, above it 1 - e^q(|x|), where q fits
// log(erfc). Both are least-squares fits made for this file, with errors below
// 2e-9.
inline float Erf(float x) {
  const float magnitude = x < 0.0f ? -x : x;
  const float z = x * x;
  float p = 8.20979694253765e-05f;
  p = p * z - 0.0008104441803880036f;
  p = p * z + 0.005197642371058464f;
  p = p * z - 0.026858031749725342f;
  p = p * z + 0.11283671110868454f;
  p = p * z - 0.37612631916999817f;
  // 2 / sqrt(pi) in two parts, since this term decides the last bit.
  const float small = x + x * (p * z + 0.128379167f);
  const float t = (magnitude > 4.0f ? 4.0f : magnitude) - 2.0f;
  float q = 0.00019961775979027152f;
  q = q * t - 0.0006827533943578601f;
  q = q * t + 0.0035573053173720837f;
  q = q * t - 0.016495754942297935f;
  q = q * t - 0.9237602353096008f;
  q = q * t - 4.418160438537598f;
  q = q * t - 5.364941120147705f;
  const float large = 1.0f - Exp(q);
  const uint32_t sign = std::bit_cast<uint32_t>(x) & 0x80000000u;
  const float signed_large =
      std::bit_cast<float>(std::bit_cast<uint32_t>(large) | sign);
  return magnitude < 0.9f ? small : signed_large;
}

}  // namespace loadline::executor::cpu

#endif  // LOADLINE_EXECUTOR_CPU_VECTOR_MATH_H_
