// The kernel tables of the elementwise families, which have the same operators
// on every device. A device passes its prepare functions as a struct:
//
//   struct Pointwise {
//     using Prepare = cpu::Prepare;
//     using Math = cpu::Math;  // as pointwise_formulas.h requires
//     template <typename F>
//     static constexpr PrepareKernelFunction<Prepare> kUnary = Unary<F>;
//     ...
//   };
//   absl::Span<const KernelEntry> PointwiseKernels() {
//     return kPointwiseKernels<Pointwise>;
//   }
#ifndef LOADLINE_EXECUTOR_OPS_ELEMENTWISE_TABLES_H_
#define LOADLINE_EXECUTOR_OPS_ELEMENTWISE_TABLES_H_

#include "executor/ops/arithmetic.h"
#include "executor/ops/kernel_table.h"
#include "executor/ops/operator_shapes.h"
#include "executor/ops/pointwise_formulas.h"

namespace loadline::executor {

template <typename D>
PreparedKernel PrepareGelu(const typename D::Prepare& p) {
  using Math = typename D::Math;
  return IsTanhGelu(p) ? D::template kUnary<GeluTanhOf<Math>>(p)
                       : D::template kUnary<GeluExactOf<Math>>(p);
}

template <typename D>
PreparedKernel PrepareGeluGrad(const typename D::Prepare& p) {
  using Math = typename D::Math;
  return IsTanhGelu(p) ? D::template kGradient<GeluTanhGradOf<Math>>(p)
                       : D::template kGradient<GeluExactGradOf<Math>>(p);
}

// `D`: Prepare, Math, kUnary<F> (y = f(x)), kGradient<F> (dx = f(dy, saved))
// and kNot.
template <typename D>
inline constexpr KernelEntryOf<typename D::Prepare> kPointwiseKernels[] = {
    {"Relu", D::template kUnary<ReluOf>},
    {"Sigmoid", D::template kUnary<SigmoidOf<typename D::Math>>},
    {"Tanh", D::template kUnary<TanhOf<typename D::Math>>},
    {"Exp", D::template kUnary<ExpOf<typename D::Math>>},
    {"Log", D::template kUnary<LogOf<typename D::Math>>},
    {"Sqrt", D::template kUnary<SqrtOf>},
    {"Neg", D::template kUnary<NegOf>},
    {"Abs", D::template kUnary<AbsOf>},
    {"Erf", D::template kUnary<ErfOf<typename D::Math>>},
    {"Reciprocal", D::template kUnary<ReciprocalOf>},
    {"Gelu", PrepareGelu<D>},
    {"Not", D::kNot},
    {"ReluGrad", D::template kGradient<ReluGradOf>},
    {"SigmoidGrad", D::template kGradient<SigmoidGradOf>},
    {"TanhGrad", D::template kGradient<TanhGradOf>},
    {"GeluGrad", PrepareGeluGrad<D>},
    {"ErfGrad", D::template kGradient<ErfGradOf<typename D::Math>>},
};

// `D`: Prepare, kArithmetic<F>, kOfF32<F>, kOfIntegers<F>, kCompare<F>,
// kLogic<F>, kDiv, kPow and kWhere.
template <typename D>
inline constexpr KernelEntryOf<typename D::Prepare> kBroadcastKernels[] = {
    {"Add", D::template kArithmetic<AddOf>},
    {"Sub", D::template kArithmetic<SubOf>},
    {"Mul", D::template kArithmetic<MulOf>},
    {"Max", D::template kArithmetic<MaxOf>},
    {"Min", D::template kArithmetic<MinOf>},
    {"Div", D::kDiv},
    {"Pow", D::kPow},
    {"Fmod", D::template kOfF32<FmodOf>},
    {"Equal", D::template kCompare<EqualOf>},
    {"Less", D::template kCompare<LessOf>},
    {"LessOrEqual", D::template kCompare<LessOrEqualOf>},
    {"Greater", D::template kCompare<GreaterOf>},
    {"GreaterOrEqual", D::template kCompare<GreaterOrEqualOf>},
    {"And", D::template kLogic<AndOf>},
    {"Or", D::template kLogic<OrOf>},
    {"BitwiseAnd", D::template kOfIntegers<BitwiseAndOf>},
    {"BitwiseOr", D::template kOfIntegers<BitwiseOrOf>},
    {"BitwiseXor", D::template kOfIntegers<BitwiseXorOf>},
    {"Where", D::kWhere},
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_OPS_ELEMENTWISE_TABLES_H_
