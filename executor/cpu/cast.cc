// Cast between f32, i64, i32 and bool. Tested in tests/conformance/.
#include <limits>

#include "executor/cpu/families.h"
#include "executor/cpu/parallel.h"
#include "executor/dispatch.h"

namespace loadline::executor::cpu {
namespace {

// Truncates towards zero; what does not fit becomes the nearest end of the
// range and NaN becomes 0 (C++ leaves both undefined).
template <typename To>
To Truncate(float x) {
  // Both are powers of two (or minus one), exact as floats.
  constexpr float kLow = static_cast<float>(std::numeric_limits<To>::min());
  if (x >= -kLow) return std::numeric_limits<To>::max();
  if (x >= kLow) return static_cast<To>(x);
  return x < kLow ? std::numeric_limits<To>::min() : To{0};
}

template <typename To, typename From>
To Convert(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From{0};
  } else if constexpr (std::is_same_v<From, float> && std::is_integral_v<To>) {
    return Truncate<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

PreparedKernel Cast(const Prepare& p) {
  const int64_t n = p.output(0).elements();
  return WithNumberOrBool(p, p.input(0).dtype, [&](auto from) {
    using From = decltype(from);
    return WithNumberOrBool(
        p, p.output(0).dtype, [&](auto to) -> PreparedKernel {
          using To = decltype(to);
          return MakeKernel([n](const KernelArgs& args) {
            const From* x = In<From>(args, 0);
            To* y = Out<To>(args, 0);
            ParallelFor(n, kElementBlock, [=](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) {
                y[i] = Convert<To, From>(x[i]);
              }
            });
          });
        });
  });
}

constexpr KernelEntry kKernels[] = {{"Cast", Cast}};

}  // namespace

absl::Span<const KernelEntry> CastKernels() { return kKernels; }

}  // namespace loadline::executor::cpu
