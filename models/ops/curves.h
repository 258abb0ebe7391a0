// Curves: pointwise operators y = f(x) with at most a few numbers as
// attributes. One struct below says everything of an operator. From it follow
// its entry and that of its gradient in the operator table, the import of
// ONNX's operator of the same name, the kernels of all devices in f32 and bf16,
// the double reference and the tests. To add one, write a struct, append it to
// Curves, and add its line to operators.md.
//
// A struct has
//   kFacts              see CurveFacts
//   Value<M>(x, a)      f(x), where a has the attributes in the order of kFacts
//   Slope<M>(x, a)      its derivative; PyTorch's at kinks
// `M` has the device's elementary functions: Exp, Expm1OfNegative, Log1pOfUnit,
// Sigmoid, Sqrt, Sin, Cos, Asin, Acos, Atan, Sinh, Cosh, Asinh, Acosh, Atanh,
// Floor, Rint. Choose with ?: between finite terms:
// all of them are computed.
#ifndef LOADLINE_MODELS_OPS_CURVES_H_
#define LOADLINE_MODELS_OPS_CURVES_H_

#include <cstddef>

#include "absl/strings/string_view.h"
#include "models/host_device.h"

namespace loadline::models {

inline constexpr size_t kMostCurveAttributes = 2;

struct CurveAttribute {
  absl::string_view name;  // empty: there are no more
  double fallback = 0;     // ONNX's default
};

// A value and a slope that PyTorch computes, with the default attributes.
struct CurvePoint {
  double x = 0;
  double value = 0;
  double slope = 0;
};

struct CurveFacts {
  absl::string_view name;
  absl::string_view gradient;  // name of the operator dx = dy f'(x)
  CurveAttribute attributes[kMostCurveAttributes];
  int flops = 1;  // of one element
  // Where tests compare with finite differences: no kink in (low, high).
  double low = -4;
  double high = 4;
  // Computed in f32 where the model computes in bf16, as PyTorch's autocast
  // does. Others compute in the type of their input.
  bool wide = false;
  // Points that tests compare, such as kinks. curves_test.cc has those of the
  // curves without.
  CurvePoint known[2] = {};
  // Tests compare kernels with formulas between these: f must be defined.
  double lowest = -30;
  double highest = 30;
};

// e^x - 1 below 0.
template <typename M, typename R>
LOADLINE_HOST_DEVICE R NegativeExpm1(R x) {
  return M::Expm1OfNegative(x > R{0} ? R{0} : x);
}

struct Elu {
  static constexpr CurveFacts kFacts = {"Elu", "EluGrad", {{"alpha", 1}},
                                        14,    -4,        -0.01};
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Value(R x, const R* a) {
    return x > R{0} ? x : a[0] * NegativeExpm1<M>(x);
  }
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Slope(R x, const R* a) {
    return x > R{0} ? R{1} : a[0] * M::Exp(x > R{0} ? R{0} : x);
  }
};

struct Selu {
  static constexpr CurveFacts kFacts = {"Selu",
                                        "SeluGrad",
                                        {{"alpha", 1.67326319217681884765625},
                                         {"gamma", 1.05070102214813232421875}},
                                        15,
                                        -4,
                                        -0.01};
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Value(R x, const R* a) {
    return a[1] * Elu::Value<M>(x, a);
  }
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Slope(R x, const R* a) {
    return a[1] * Elu::Slope<M>(x, a);
  }
};

struct Celu {
  static constexpr CurveFacts kFacts = {"Celu", "CeluGrad", {{"alpha", 1}},
                                        18,     -4,         -0.01};
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Value(R x, const R* a) {
    return x > R{0} ? x : a[0] * NegativeExpm1<M>(x / a[0]);
  }
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Slope(R x, const R* a) {
    return x > R{0} ? R{1} : M::Exp(x > R{0} ? R{0} : x / a[0]);
  }
};

// log(1 + e^x)
struct Softplus {
  static constexpr CurveFacts kFacts = {
      "Softplus", "SoftplusGrad", {}, 25, -6, 6, true};
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Value(R x, const R*) {
    const R above = x > R{0} ? x : R{0};
    return above + M::Log1pOfUnit(M::Exp(x > R{0} ? -x : x));
  }
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Slope(R x, const R*) {
    return M::Sigmoid(x);
  }
};

// x tanh(softplus(x))
struct Mish {
  static constexpr CurveFacts kFacts = {"Mish", "MishGrad", {}, 25, -6, 6};
  // With e = e^-|x|: tanh(log(1 + e^x)) = ((1 + e^x)^2 - 1) / ((1 + e^x)^2 +
  // 1).
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Gate(R x) {
    const R e = M::Exp(x > R{0} ? -x : x);
    const R numerator = x > R{0} ? R{1} + R{2} * e : e * (e + R{2});
    return numerator / (numerator + (x > R{0} ? R{2} * e * e : R{2}));
  }
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Value(R x, const R*) {
    return x * Gate<M>(x);
  }
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Slope(R x, const R*) {
    const R gate = Gate<M>(x);
    return gate + x * (R{1} - gate * gate) * M::Sigmoid(x);
  }
};

struct LeakyRelu {
  static constexpr CurveFacts kFacts = {
      "LeakyRelu", "LeakyReluGrad", {{"alpha", 0.01}}, 2, -4, -0.01};
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Value(R x, const R* a) {
    return x > R{0} ? x : a[0] * x;
  }
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Slope(R x, const R* a) {
    return x > R{0} ? R{1} : a[0];
  }
};

struct ThresholdedRelu {
  static constexpr CurveFacts kFacts = {
      "ThresholdedRelu", "ThresholdedReluGrad", {{"alpha", 1}}, 1, 1.01, 4};
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Value(R x, const R* a) {
    return x <= a[0] ? R{0} : x;
  }
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Slope(R x, const R* a) {
    return x > a[0] ? R{1} : R{0};
  }
};

// a[0] x + a[1], within [0, 1].
struct HardSigmoid {
  static constexpr CurveFacts kFacts = {"HardSigmoid",
                                        "HardSigmoidGrad",
                                        {{"alpha", 0.2}, {"beta", 0.5}},
                                        4,
                                        -2,
                                        2};
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Value(R x, const R* a) {
    const R y = a[0] * x + a[1];
    const R high = y > R{1} ? R{1} : y;
    return high < R{0} ? R{0} : high;
  }
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Slope(R x, const R* a) {
    const R y = a[0] * x + a[1];
    return y > R{0} && y < R{1} ? a[0] : R{0};
  }
};

// x min(max(x + 3, 0), 6) / 6
struct HardSwish {
  static constexpr CurveFacts kFacts = {
      "HardSwish", "HardSwishGrad", {}, 6, -2.9, 2.9};
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Value(R x, const R*) {
    const R high = x + R{3} > R{6} ? R{6} : x + R{3};
    return x * (high < R{0} ? R{0} : high) / R{6};
  }
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Slope(R x, const R*) {
    const R inside = x / R{3} + R{0.5};
    return x <= R{-3} ? R{0} : (x < R{3} ? inside : R{1});
  }
};

// x / (1 + |x|)
struct Softsign {
  static constexpr CurveFacts kFacts = {"Softsign", "SoftsignGrad", {},
                                        6,          0.01,           4};
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Value(R x, const R*) {
    return x / (R{1} + (x < R{0} ? -x : x));
  }
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Slope(R x, const R*) {
    const R sum = R{1} + (x < R{0} ? -x : x);
    return R{1} / (sum * sum);
  }
};

// x, within [min, max]. ONNX passes the bounds as inputs. A bound of
// kNoCurveBound does not bind.
inline constexpr double kNoCurveBound = 3.4028234663852886e38;  // f32's largest

struct Clip {
  static constexpr CurveFacts kFacts = {
      "Clip", "ClipGrad", {{"min", -1}, {"max", 1}}, 2, -0.99, 0.99};
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Value(R x, const R* a) {
    const R none = static_cast<R>(kNoCurveBound);
    const R low = x < a[0] && a[0] > -none ? a[0] : x;
    return low > a[1] && a[1] < none ? a[1] : low;
  }
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Slope(R x, const R* a) {
    return x > a[0] && x < a[1] ? R{1} : R{0};
  }
};

struct Sin {
  static constexpr CurveFacts kFacts = {"Sin", "SinGrad", {}, 20};
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Value(R x, const R*) {
    return M::Sin(x);
  }
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Slope(R x, const R*) {
    return M::Cos(x);
  }
};

struct Cos {
  static constexpr CurveFacts kFacts = {"Cos", "CosGrad", {}, 20};
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Value(R x, const R*) {
    return M::Cos(x);
  }
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Slope(R x, const R*) {
    return -M::Sin(x);
  }
};

// x, moved by `bias` towards 0 outside [-lambd, lambd], and 0 inside.
struct Shrink {
  static constexpr CurveFacts kFacts = {
      "Shrink", "ShrinkGrad", {{"bias", 0}, {"lambd", 0.5}}, 3, 0.51,
      4,        false,        {{0.5, 0, 0}, {-2, -2, 1}}};
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Value(R x, const R* a) {
    const R inside = x == x ? R{0} : x;  // NaN stays
    return x > a[1] ? x - a[0] : (x < -a[1] ? x + a[0] : inside);
  }
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Slope(R x, const R* a) {
    return x > a[1] || x < -a[1] ? R{1} : R{0};
  }
};

struct Sign {
  static constexpr CurveFacts kFacts = {
      "Sign", "SignGrad", {}, 2, 0.1, 4, false, {{0, 0, 0}, {-2.5, -1, 0}}};
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Value(R x, const R*) {
    const R rest = x < R{0} ? R{-1} : x;  // 0 and NaN stay
    return x > R{0} ? R{1} : rest;
  }
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Slope(R, const R*) {
    return R{0};
  }
};

struct Floor {
  static constexpr CurveFacts kFacts = {
      "Floor", "FloorGrad", {}, 1, 0.1, 0.9, false, {{-2.5, -3, 0}, {2, 2, 0}}};
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Value(R x, const R*) {
    return M::Floor(x);
  }
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Slope(R, const R*) {
    return R{0};
  }
};

struct Ceil {
  static constexpr CurveFacts kFacts = {
      "Ceil", "CeilGrad", {}, 1, 0.1, 0.9, false, {{-2.5, -2, 0}, {2, 2, 0}}};
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Value(R x, const R*) {
    return -M::Floor(-x);
  }
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Slope(R, const R*) {
    return R{0};
  }
};

// Halves go to the even neighbour.
struct Round {
  static constexpr CurveFacts kFacts = {
      "Round", "RoundGrad", {},    1,
      0.6,     1.4,         false, {{-2.5, -2, 0}, {1.5, 2, 0}}};
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Value(R x, const R*) {
    return M::Rint(x);
  }
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Slope(R, const R*) {
    return R{0};
  }
};

struct Atan {
  static constexpr CurveFacts kFacts = {
      "Atan", "AtanGrad", {},    20,
      -4,     4,          false, {{0, 0, 1}, {1, 0.78539816339744828, 0.5}}};
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Value(R x, const R*) {
    return M::Atan(x);
  }
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Slope(R x, const R*) {
    return R{1} / (R{1} + x * x);
  }
};

struct Tan {
  static constexpr CurveFacts kFacts = {
      "Tan", "TanGrad",
      {},    40,
      -1.2,  1.2,
      false, {{0, 0, 1}, {1, 1.5574077246549023, 3.42551882081476}}};
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Value(R x, const R*) {
    return M::Sin(x) / M::Cos(x);
  }
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Slope(R x, const R* a) {
    const R y = Value<M>(x, a);
    return R{1} + y * y;
  }
};

struct Asin {
  static constexpr CurveFacts kFacts = {
      "Asin", "AsinGrad",
      {},     20,
      -0.9,   0.9,
      false,  {{0, 0, 1}, {0.5, 0.52359877559829887, 1.1547005383792517}},
      -0.95,  0.95};
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Value(R x, const R*) {
    return M::Asin(x);
  }
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Slope(R x, const R*) {
    return R{1} / M::Sqrt(R{1} - x * x);
  }
};

struct Acos {
  static constexpr CurveFacts kFacts = {
      "Acos",
      "AcosGrad",
      {},
      20,
      -0.9,
      0.9,
      false,
      {{0, 1.5707963267948966, -1},
       {0.5, 1.0471975511965979, -1.1547005383792517}},
      -0.95,
      0.95};
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Value(R x, const R*) {
    return M::Acos(x);
  }
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Slope(R x, const R*) {
    return R{-1} / M::Sqrt(R{1} - x * x);
  }
};

struct Sinh {
  static constexpr CurveFacts kFacts = {
      "Sinh", "SinhGrad",
      {},     20,
      -4,     4,
      false,  {{0, 0, 1}, {1, 1.1752011936438014, 1.5430806348152437}}};
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Value(R x, const R*) {
    return M::Sinh(x);
  }
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Slope(R x, const R*) {
    return M::Cosh(x);
  }
};

struct Cosh {
  static constexpr CurveFacts kFacts = {
      "Cosh", "CoshGrad",
      {},     20,
      -4,     4,
      false,  {{0, 1, 0}, {1, 1.5430806348152437, 1.1752011936438014}}};
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Value(R x, const R*) {
    return M::Cosh(x);
  }
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Slope(R x, const R*) {
    return M::Sinh(x);
  }
};

struct Asinh {
  static constexpr CurveFacts kFacts = {
      "Asinh", "AsinhGrad",
      {},      25,
      -4,      4,
      false,   {{0, 0, 1}, {1, 0.88137358701954305, 0.70710678118654752}}};
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Value(R x, const R*) {
    return M::Asinh(x);
  }
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Slope(R x, const R*) {
    return R{1} / M::Sqrt(x * x + R{1});
  }
};

struct Acosh {
  static constexpr CurveFacts kFacts = {
      "Acosh",
      "AcoshGrad",
      {},
      25,
      1.1,
      4,
      false,
      {{1.25, 0.69314718055994531, 1.3333333333333333},
       {2, 1.3169578969248167, 0.57735026918962576}},
      1.05,
      30};
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Value(R x, const R*) {
    return M::Acosh(x);
  }
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Slope(R x, const R*) {
    return R{1} / M::Sqrt(x * x - R{1});
  }
};

struct Atanh {
  static constexpr CurveFacts kFacts = {
      "Atanh", "AtanhGrad",
      {},      25,
      -0.9,    0.9,
      false,   {{0, 0, 1}, {0.5, 0.54930614433405485, 1.3333333333333333}},
      -0.95,   0.95};
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Value(R x, const R*) {
    return M::Atanh(x);
  }
  template <typename M, typename R>
  LOADLINE_HOST_DEVICE static R Slope(R x, const R*) {
    return R{1} / (R{1} - x * x);
  }
};

template <typename... C>
struct CurveList {};

using Curves = CurveList<Elu, Selu, Celu, Softplus, Mish, LeakyRelu,
                         ThresholdedRelu, HardSigmoid, HardSwish, Softsign,
                         Clip, Sin, Cos, Shrink, Sign, Floor, Ceil, Round, Atan,
                         Tan, Asin, Acos, Sinh, Cosh, Asinh, Acosh, Atanh>;

// Calls body(C{}) for each struct of the list.
template <typename Body, typename... C>
void ForEachCurve(CurveList<C...>, const Body& body) {
  (body(C{}), ...);
}

// The facts of the curve with this name, or of which it is the gradient; null
// for any other operator.
const CurveFacts* FindCurve(absl::string_view op);

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_OPS_CURVES_H_
