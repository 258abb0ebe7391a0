// Elementwise formulas, shared by all devices. `Math` provides the device's
// elementary functions: Exp, Log, Tanh, Erf, Sigmoid.
#ifndef LOADLINE_EXECUTOR_OPS_POINTWISE_FORMULAS_H_
#define LOADLINE_EXECUTOR_OPS_POINTWISE_FORMULAS_H_

#include <cmath>

#include "models/host_device.h"

namespace loadline::executor {

inline constexpr float kSqrtHalf = 0.707106781186547524f;
inline constexpr float kTwoOverSqrtPi = 1.12837916709551257f;
inline constexpr float kSqrtTwoOverPi = 0.797884560802865356f;
inline constexpr float kOneOverSqrtTwoPi = 0.398942280401432678f;
inline constexpr float kGeluCubic = 0.044715f;

// NaN stays NaN, as in PyTorch.
struct ReluOf {
  LOADLINE_HOST_DEVICE float operator()(float x) const {
    return x < 0.0f ? 0.0f : x;
  }
};
struct SqrtOf {
  LOADLINE_HOST_DEVICE float operator()(float x) const { return sqrtf(x); }
};
struct NegOf {
  LOADLINE_HOST_DEVICE float operator()(float x) const { return -x; }
};
struct AbsOf {
  LOADLINE_HOST_DEVICE float operator()(float x) const { return fabsf(x); }
};
struct ReciprocalOf {
  LOADLINE_HOST_DEVICE float operator()(float x) const { return 1.0f / x; }
};
template <typename Math>
struct SigmoidOf {
  LOADLINE_HOST_DEVICE float operator()(float x) const {
    return Math::Sigmoid(x);
  }
};
template <typename Math>
struct TanhOf {
  LOADLINE_HOST_DEVICE float operator()(float x) const { return Math::Tanh(x); }
};
template <typename Math>
struct ExpOf {
  LOADLINE_HOST_DEVICE float operator()(float x) const { return Math::Exp(x); }
};
template <typename Math>
struct LogOf {
  LOADLINE_HOST_DEVICE float operator()(float x) const { return Math::Log(x); }
};
template <typename Math>
struct ErfOf {
  LOADLINE_HOST_DEVICE float operator()(float x) const { return Math::Erf(x); }
};
template <typename Math>
struct GeluExactOf {
  LOADLINE_HOST_DEVICE float operator()(float x) const {
    return 0.5f * x * (1.0f + Math::Erf(x * kSqrtHalf));
  }
};
template <typename Math>
struct GeluTanhOf {
  LOADLINE_HOST_DEVICE float operator()(float x) const {
    const float inner = kSqrtTwoOverPi * (x + kGeluCubic * x * x * x);
    return 0.5f * x * (1.0f + Math::Tanh(inner));
  }
};

// Gradients: dx from dy and the saved tensor, x or y as models/ops/operators.md
// says.
struct ReluGradOf {
  LOADLINE_HOST_DEVICE float operator()(float dy, float y) const {
    return y > 0.0f ? dy : 0.0f;
  }
};
struct SigmoidGradOf {
  LOADLINE_HOST_DEVICE float operator()(float dy, float y) const {
    return dy * (y * (1.0f - y));
  }
};
struct TanhGradOf {
  LOADLINE_HOST_DEVICE float operator()(float dy, float y) const {
    return dy * (1.0f - y * y);
  }
};
template <typename Math>
struct ErfGradOf {
  LOADLINE_HOST_DEVICE float operator()(float dy, float x) const {
    return dy * (kTwoOverSqrtPi * Math::Exp(-x * x));
  }
};
template <typename Math>
struct GeluExactGradOf {
  LOADLINE_HOST_DEVICE float operator()(float dy, float x) const {
    const float cdf = 0.5f * (1.0f + Math::Erf(x * kSqrtHalf));
    const float pdf = kOneOverSqrtTwoPi * Math::Exp(-0.5f * x * x);
    return dy * (cdf + x * pdf);
  }
};
template <typename Math>
struct GeluTanhGradOf {
  LOADLINE_HOST_DEVICE float operator()(float dy, float x) const {
    const float square = x * x;
    const float inner = kSqrtTwoOverPi * (x + kGeluCubic * x * square);
    const float t = Math::Tanh(inner);
    const float slope = kSqrtTwoOverPi * (1.0f + 3.0f * kGeluCubic * square);
    return dy * (0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * slope);
  }
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_OPS_POINTWISE_FORMULAS_H_
