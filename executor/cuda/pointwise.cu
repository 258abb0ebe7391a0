// Elementwise kernels of one input, and the gradients that read dy and one
// saved tensor; f32 and bf16. Tested in tests/conformance/.
#include "executor/cuda/elementwise.h"
#include "executor/cuda/families.h"
#include "executor/cuda/math.h"
#include "executor/cuda/types.h"
#include "executor/ops/elementwise_tables.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cuda {
namespace {

template <typename F>
PreparedKernel Unary(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireOneType(p));
  return WithFloat(p, p.output(0).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    return MakeMap<OnFloats<F, T>, T, T>(p.output(0).elements());
  });
}

template <typename F>
PreparedKernel Gradient(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireOneType(p));
  return WithFloat(p, p.output(0).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    return MakeMapPair<OnFloats<F, T>, T>(p.output(0).elements());
  });
}

struct NotOf {
  __device__ uint8_t operator()(uint8_t x) const { return x == 0; }
};

PreparedKernel Not(const Prepare& p) {
  if (p.input(0).dtype != DType::kBool) {
    return p.Unsupported(p.input(0).dtype);
  }
  return MakeMap<NotOf, uint8_t, uint8_t>(p.output(0).elements());
}

struct Pointwise {
  using Prepare = cuda::Prepare;
  using Math = cuda::Math;
  template <typename F>
  static constexpr PrepareKernelFunction<Prepare> kUnary = Unary<F>;
  template <typename F>
  static constexpr PrepareKernelFunction<Prepare> kGradient = Gradient<F>;
  static constexpr PrepareKernelFunction<Prepare> kNot = Not;
};

}  // namespace

absl::Span<const KernelEntry> PointwiseKernels() {
  return kPointwiseKernels<Pointwise>;
}

}  // namespace loadline::executor::cuda
