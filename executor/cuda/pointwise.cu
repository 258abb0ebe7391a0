// Elementwise kernels of one input, and the gradients that read dy and one
// saved tensor; f32 and bf16. Tested in tests/conformance/.
#include "executor/cuda/elementwise.h"
#include "executor/cuda/families.h"
#include "executor/cuda/math.h"
#include "executor/cuda/types.h"
#include "executor/ops/operator_shapes.h"
#include "executor/ops/pointwise_formulas.h"
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

PreparedKernel Gelu(const Prepare& p) {
  return IsTanhGelu(p) ? Unary<GeluTanhOf<Math>>(p)
                       : Unary<GeluExactOf<Math>>(p);
}

PreparedKernel GeluGrad(const Prepare& p) {
  return IsTanhGelu(p) ? Gradient<GeluTanhGradOf<Math>>(p)
                       : Gradient<GeluExactGradOf<Math>>(p);
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

constexpr KernelEntry kKernels[] = {
    {"Relu", Unary<ReluOf>},
    {"Sigmoid", Unary<SigmoidOf<Math>>},
    {"Tanh", Unary<TanhOf<Math>>},
    {"Exp", Unary<ExpOf<Math>>},
    {"Log", Unary<LogOf<Math>>},
    {"Sqrt", Unary<SqrtOf>},
    {"Neg", Unary<NegOf>},
    {"Abs", Unary<AbsOf>},
    {"Erf", Unary<ErfOf<Math>>},
    {"Reciprocal", Unary<ReciprocalOf>},
    {"Gelu", Gelu},
    {"Not", Not},
    {"ReluGrad", Gradient<ReluGradOf>},
    {"SigmoidGrad", Gradient<SigmoidGradOf>},
    {"TanhGrad", Gradient<TanhGradOf>},
    {"GeluGrad", GeluGrad},
    {"ErfGrad", Gradient<ErfGradOf<Math>>},
};

}  // namespace

absl::Span<const KernelEntry> PointwiseKernels() { return kKernels; }

}  // namespace loadline::executor::cuda
