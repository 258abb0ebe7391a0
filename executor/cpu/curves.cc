// Curves (models/ops/curves.h) on the CPU. The output may overwrite the first
// input: a loop reads element i before it writes element i and nothing else.
// bf16 elements are computed in float. Tested in tests/conformance/.
#include <cmath>

#include "executor/cpu/families.h"
#include "executor/cpu/parallel.h"
#include "executor/cpu/prepare.h"
#include "executor/cpu/vector_math.h"
#include "executor/ops/bf16.h"
#include "executor/ops/curve_kernels.h"
#include "executor/ops/dispatch.h"

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
  const int64_t n = p.output(0).elements();
  return WithFloat<Bf16>(
      p, p.output(0).dtype, [&](auto type) -> PreparedKernel {
        using T = decltype(type);
        return MakeKernel([n, f = F::Of(p)](const KernelArgs& args) {
          const T* x = In<T>(args, 0);
          T* y = Out<T>(args, 0);
          ParallelFor(n, kElementBlock, [=](int64_t begin, int64_t end) {
#pragma omp simd
            for (int64_t i = begin; i < end; ++i) y[i] = f(x[i]);
          });
        });
      });
}

template <typename F>
PreparedKernel Slope(const Prepare& p) {
  const int64_t n = p.output(0).elements();
  return WithFloat<Bf16>(
      p, p.output(0).dtype, [&](auto type) -> PreparedKernel {
        using T = decltype(type);
        return MakeKernel([n, f = F::Of(p)](const KernelArgs& args) {
          const T* dy = In<T>(args, 0);
          const T* x = In<T>(args, 1);
          T* dx = Out<T>(args, 0);
          ParallelFor(n, kElementBlock, [=](int64_t begin, int64_t end) {
#pragma omp simd
            for (int64_t i = begin; i < end; ++i) dx[i] = f(dy[i], x[i]);
          });
        });
      });
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
