// Elements are copied out and in, because files do not align them. Tested in
// tests/executor/train/data_test.cc and tests/executor/files/npz_test.cc.
#include "executor/files/convert_elements.h"

#include <cstring>
#include <type_traits>

namespace loadline::executor {
namespace {

using models::DType;

struct Half {
  uint16_t bits;
};

float ToFloat(Half half) {
  const uint32_t sign = static_cast<uint32_t>(half.bits & 0x8000) << 16;
  const uint32_t exponent = (half.bits >> 10) & 31;
  const uint32_t mantissa = half.bits & 1023;
  if (exponent == 0) {
    // Subnormal: mantissa / 2^24, exact in f32.
    const float value = static_cast<float>(mantissa) / 16777216.0f;
    return sign != 0 ? -value : value;
  }
  const uint32_t bits =
      exponent == 31 ? sign | 0x7F800000u | (mantissa << 13)
                     : sign | ((exponent + 112) << 23) | (mantissa << 13);
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

template <typename From, typename To>
bool ConvertAll(const std::byte* from, size_t count, std::byte* to) {
  for (size_t i = 0; i < count; ++i) {
    From x;
    std::memcpy(&x, from + i * sizeof(From), sizeof(From));
    To y;
    if constexpr (std::is_same_v<From, Half>) {
      y = ToFloat(x);
    } else {
      // An int8 is a number here. NOLINTNEXTLINE(bugprone-signed-char-misuse)
      y = static_cast<To>(x);
      if constexpr (std::is_integral_v<To>) {
        if (static_cast<From>(y) != x) return false;
        if constexpr (std::is_unsigned_v<From>) {
          if (y < 0) return false;
        }
      }
    }
    std::memcpy(to + i * sizeof(To), &y, sizeof(To));
  }
  return true;
}

template <size_t kBytes>
bool CopyAll(const std::byte* from, size_t count, std::byte* to) {
  if (count > 0) std::memcpy(to, from, count * kBytes);
  return true;
}

// To a wider integer, or i64 to i32.
template <typename To>
ElementConversion ToInteger(const FileElement& from) {
  if (from.narrow_bytes == 4) return ConvertAll<uint32_t, To>;
  if (from.narrow_bytes == 2) {
    return from.narrow_signed ? ConvertAll<int16_t, To>
                              : ConvertAll<uint16_t, To>;
  }
  switch (from.dtype) {
    case DType::kI64:
      return ConvertAll<int64_t, To>;
    case DType::kI32:
      return ConvertAll<int32_t, To>;
    case DType::kI8:
      return ConvertAll<int8_t, To>;
    case DType::kU8:
    case DType::kBool:
      return ConvertAll<uint8_t, To>;
    default:
      return nullptr;
  }
}

ElementConversion Copy(DType dtype) {
  switch (models::DTypeBytes(dtype)) {
    case 1:
      return CopyAll<1>;
    case 2:
      return CopyAll<2>;
    case 4:
      return CopyAll<4>;
    default:
      return CopyAll<8>;
  }
}

}  // namespace

int64_t FileElement::bytes() const {
  return narrow_bytes > 0 ? narrow_bytes : models::DTypeBytes(dtype);
}

ElementConversion FindConversion(const FileElement& from, DType to) {
  if (from.narrow_bytes == 0 && from.dtype == to) return Copy(to);
  switch (to) {
    case DType::kI64:
      return ToInteger<int64_t>(from);
    case DType::kI32:
      return ToInteger<int32_t>(from);
    case DType::kF32:
      if (from.dtype == DType::kF64) return ConvertAll<double, float>;
      if (from.dtype == DType::kF16) return ConvertAll<Half, float>;
      return nullptr;
    default:
      return nullptr;
  }
}

}  // namespace loadline::executor
