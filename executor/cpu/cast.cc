// Cast between f32, bf16, i64, i32 and bool, and from u8. Tested in
// tests/conformance/.
#include <type_traits>

#include "executor/cpu/families.h"
#include "executor/cpu/parallel.h"
#include "executor/ops/arithmetic.h"
#include "executor/ops/bf16.h"
#include "executor/ops/dispatch.h"

namespace loadline::executor::cpu {
namespace {

// The type in which conversions from T are computed.
template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, Bf16>, float, T>;

PreparedKernel Cast(const Prepare& p) {
  const int64_t n = p.output(0).elements();
  return WithNumberBoolOrByte<Bf16>(p, p.input(0).dtype, [&](auto from) {
    using From = decltype(from);
    return WithNumberOrBool<Bf16>(
        p, p.output(0).dtype, [&](auto to) -> PreparedKernel {
          using To = decltype(to);
          return MakeKernel([n](const KernelArgs& args) {
            const From* x = In<From>(args, 0);
            To* y = Out<To>(args, 0);
            ParallelFor(n, kElementBlock, [=](int64_t begin, int64_t end) {
#pragma omp simd
              for (int64_t i = begin; i < end; ++i) {
                y[i] = Convert<To, Wide<From>>(x[i]);
              }
            });
          });
        });
  });
}

constexpr KernelEntry kCastKernels[] = {{"Cast", Cast}};

}  // namespace

absl::Span<const KernelEntry> CastKernels() { return kCastKernels; }

}  // namespace loadline::executor::cpu
