// Cast between f32, bf16, i64, i32 and bool, and from u8. Tested in
// tests/conformance/.
#include "executor/cuda/elementwise.h"
#include "executor/cuda/families.h"
#include "executor/ops/arithmetic.h"

namespace loadline::executor::cuda {
namespace {

template <typename To, typename From>
struct ConvertOf {
  __device__ To operator()(From x) const {
    return Narrow<To>(Convert<Wide<To>>(Widen(x)));
  }
};

PreparedKernel Cast(const Prepare& p) {
  const int64_t n = p.output(0).elements();
  return WithNumberBoolOrByte<BFloat16>(p, p.input(0).dtype, [&](auto from) {
    using From = decltype(from);
    return WithNumberOrBool<BFloat16>(p, p.output(0).dtype, [&](auto to) {
      using To = decltype(to);
      return MakeMap<ConvertOf<To, From>, From, To>(n);
    });
  });
}

constexpr KernelEntry kKernels[] = {{"Cast", Cast}};

}  // namespace

absl::Span<const KernelEntry> CastKernels() { return kKernels; }

}  // namespace loadline::executor::cuda
