// The kernel table of curves (models/ops/curves.h), for any device. It passes
// its prepare functions as a struct:
//
//   Prepare, Math
//   kValue<F>, kSlope<F>   prepare y = f(x), dx = f(dy, x), with F::Of(p) for f
#ifndef LOADLINE_EXECUTOR_OPS_CURVE_KERNELS_H_
#define LOADLINE_EXECUTOR_OPS_CURVE_KERNELS_H_

#include <array>

#include "executor/ops/kernel_table.h"
#include "executor/ops/prepare.h"
#include "models/ops/curves.h"

namespace loadline::executor {

template <typename C>
struct CurveAttributes {
  float at[models::kMostCurveAttributes] = {};

  static CurveAttributes Of(const Prepare& p) {
    CurveAttributes made;
    for (size_t i = 0; i < models::kMostCurveAttributes; ++i) {
      const models::CurveAttribute& attribute = C::kFacts.attributes[i];
      if (attribute.name.empty()) break;
      made.at[i] = static_cast<float>(
          p.attributes().Float(attribute.name, attribute.fallback));
    }
    return made;
  }
};

template <typename C, typename Math>
struct CurveValue {
  CurveAttributes<C> attributes;

  static CurveValue Of(const Prepare& p) { return {CurveAttributes<C>::Of(p)}; }
  LOADLINE_HOST_DEVICE float operator()(float x) const {
    return C::template Value<Math>(x, attributes.at);
  }
};

template <typename C, typename Math>
struct CurveSlope {
  CurveAttributes<C> attributes;

  static CurveSlope Of(const Prepare& p) { return {CurveAttributes<C>::Of(p)}; }
  LOADLINE_HOST_DEVICE float operator()(float dy, float x) const {
    return dy * C::template Slope<Math>(x, attributes.at);
  }
};

template <typename D, typename... C>
constexpr auto CurveKernelsOf(models::CurveList<C...>) {
  using Entry = KernelEntryOf<typename D::Prepare>;
  using Math = typename D::Math;
  return std::array<Entry, 2 * sizeof...(C)>{
      Entry{C::kFacts.name, D::template kValue<CurveValue<C, Math>>}...,
      Entry{C::kFacts.gradient, D::template kSlope<CurveSlope<C, Math>>}...};
}

template <typename D>
inline constexpr auto kCurveKernels = CurveKernelsOf<D>(models::Curves());

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_OPS_CURVE_KERNELS_H_
