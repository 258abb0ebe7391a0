// Arithmetic and conversion of single elements, shared by all devices.
#ifndef LOADLINE_EXECUTOR_OPS_ARITHMETIC_H_
#define LOADLINE_EXECUTOR_OPS_ARITHMETIC_H_

#include <cmath>
#include <limits>
#include <type_traits>

#include "models/host_device.h"

namespace loadline::executor {

// Integer arithmetic wraps around as in NumPy. Computed unsigned, where that is
// defined behaviour.
template <typename T>
using Wrapping =
    typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                std::type_identity<T>>::type;

struct AddOf {
  template <typename T>
  LOADLINE_HOST_DEVICE T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) +
                          static_cast<Wrapping<T>>(b));
  }
};
struct SubOf {
  template <typename T>
  LOADLINE_HOST_DEVICE T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) -
                          static_cast<Wrapping<T>>(b));
  }
};
struct MulOf {
  template <typename T>
  LOADLINE_HOST_DEVICE T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) *
                          static_cast<Wrapping<T>>(b));
  }
};
// Integer division requires b != 0: kernels refuse zero before.
struct DivOf {
  template <typename T>
  LOADLINE_HOST_DEVICE T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      // The smallest number over -1 overflows.
      if (b == -1) return SubOf()(T{0}, a);
    }
    return a / b;
  }
};

// What is left of a after taking away b as often as it fits, with the sign of
// a, exactly.
struct FmodOf {
  LOADLINE_HOST_DEVICE float operator()(float a, float b) const {
    return std::fmod(a, b);
  }
};

// A NaN on either side is the result.
struct MaxOf {
  template <typename T>
  LOADLINE_HOST_DEVICE T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};
struct MinOf {
  template <typename T>
  LOADLINE_HOST_DEVICE T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};

struct EqualOf {
  template <typename T>
  LOADLINE_HOST_DEVICE bool operator()(T a, T b) const {
    return a == b;
  }
};
struct LessOf {
  template <typename T>
  LOADLINE_HOST_DEVICE bool operator()(T a, T b) const {
    return a < b;
  }
};
struct LessOrEqualOf {
  template <typename T>
  LOADLINE_HOST_DEVICE bool operator()(T a, T b) const {
    return a <= b;
  }
};
struct GreaterOf {
  template <typename T>
  LOADLINE_HOST_DEVICE bool operator()(T a, T b) const {
    return a > b;
  }
};
struct GreaterOrEqualOf {
  template <typename T>
  LOADLINE_HOST_DEVICE bool operator()(T a, T b) const {
    return a >= b;
  }
};
struct AndOf {
  LOADLINE_HOST_DEVICE bool operator()(bool a, bool b) const { return a && b; }
};
struct OrOf {
  LOADLINE_HOST_DEVICE bool operator()(bool a, bool b) const { return a || b; }
};

struct BitwiseAndOf {
  template <typename T>
  LOADLINE_HOST_DEVICE T operator()(T a, T b) const {
    return a & b;
  }
};
struct BitwiseOrOf {
  template <typename T>
  LOADLINE_HOST_DEVICE T operator()(T a, T b) const {
    return a | b;
  }
};
struct BitwiseXorOf {
  template <typename T>
  LOADLINE_HOST_DEVICE T operator()(T a, T b) const {
    return a ^ b;
  }
};

template <typename T>
inline constexpr T kLowest = std::numeric_limits<T>::min();
template <typename T>
inline constexpr T kHighest = std::numeric_limits<T>::max();

// Truncates towards zero. Out-of-range numbers saturate and NaN becomes 0, both
// of which C++ leaves undefined.
template <typename To>
LOADLINE_HOST_DEVICE To Truncate(float x) {
  // Both ends are powers of two (or minus one), exact as floats.
  constexpr float kLow = static_cast<float>(kLowest<To>);
  if (x >= -kLow) return kHighest<To>;
  if (x >= kLow) return static_cast<To>(x);
  return x < kLow ? kLowest<To> : To{0};
}

template <typename To, typename From>
LOADLINE_HOST_DEVICE To Convert(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From{0};
  } else if constexpr (std::is_same_v<From, float> && std::is_integral_v<To>) {
    return Truncate<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_OPS_ARITHMETIC_H_
