// Curves (models/ops/curves.h) on a GPU, f32 and bf16. Tested in
// tests/conformance/.
#include "executor/cuda/elementwise.h"
#include "executor/cuda/families.h"
#include "executor/cuda/math.h"
#include "executor/cuda/types.h"
#include "executor/ops/curve_kernels.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cuda {
namespace {

template <typename F>
PreparedKernel Value(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireOneType(p));
  return WithFloat(p, p.output(0).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    return MakeMap<OnFloats<F, T>, T, T>(p.output(0).elements(), {F::Of(p)});
  });
}

template <typename F>
PreparedKernel Slope(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireOneType(p));
  return WithFloat(p, p.output(0).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    return MakeMapPair<OnFloats<F, T>, T>(p.output(0).elements(), {F::Of(p)});
  });
}

struct CurvesOnCuda {
  using Prepare = cuda::Prepare;
  using Math = cuda::Math;
  template <typename F>
  static constexpr PrepareKernelFunction<Prepare> kValue = Value<F>;
  template <typename F>
  static constexpr PrepareKernelFunction<Prepare> kSlope = Slope<F>;
};

}  // namespace

absl::Span<const KernelEntry> CurveKernels() {
  return kCurveKernels<CurvesOnCuda>;
}

}  // namespace loadline::executor::cuda
