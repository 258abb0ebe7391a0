// Curves (models/ops/curves.h) on the CPU. Tested in tests/conformance/.
#include <cmath>

#include "executor/cpu/elementwise.h"
#include "executor/cpu/families.h"
#include "executor/cpu/prepare.h"
#include "executor/cpu/vector_math.h"
#include "executor/ops/curve_kernels.h"

namespace loadline::executor::cpu {
namespace {

struct CurveMath {
  static float Exp(float x) { return cpu::Exp(x); }
  static float Sigmoid(float x) { return cpu::Sigmoid(x); }
  static float Expm1OfNegative(float x) { return cpu::Expm1OfNegative(x); }
  static float Log1pOfUnit(float x) { return cpu::Log1pOfUnit(x); }
  static float Sin(float x) { return std::sin(x); }
  static float Cos(float x) { return std::cos(x); }
  static float Atan(float x) { return std::atan(x); }
  static float Sqrt(float x) { return std::sqrt(x); }
  static float Asin(float x) { return std::asin(x); }
  static float Acos(float x) { return std::acos(x); }
  static float Sinh(float x) { return std::sinh(x); }
  static float Cosh(float x) { return std::cosh(x); }
  static float Asinh(float x) { return std::asinh(x); }
  static float Acosh(float x) { return std::acosh(x); }
  static float Atanh(float x) { return std::atanh(x); }
  static float Floor(float x) { return std::floor(x); }
  static float Rint(float x) { return std::rint(x); }
};

template <typename F>
PreparedKernel Value(const Prepare& p) {
  return MakeMap(p, F::Of(p));
}

template <typename F>
PreparedKernel Slope(const Prepare& p) {
  return MakeMapPair(p, F::Of(p));
}

struct CurvesOnCpu {
  using Prepare = executor::Prepare;
  using Math = CurveMath;
  template <typename F>
  static constexpr PrepareKernelFunction<Prepare> kValue = Value<F>;
  template <typename F>
  static constexpr PrepareKernelFunction<Prepare> kSlope = Slope<F>;
};

}  // namespace

absl::Span<const KernelEntry> CurveKernels() {
  return kCurveKernels<CurvesOnCpu>;
}

}  // namespace loadline::executor::cpu
