// ReduceMax, ReduceMin, CumSum and TopK: threads divide the lines. Tested in
// tests/conformance/.
#include <type_traits>

#include "executor/cpu/families.h"
#include "executor/cpu/parallel.h"
#include "executor/ops/dispatch.h"
#include "executor/ops/line_formulas.h"

namespace loadline::executor::cpu {
namespace {

// `To`: element type of the output; void: that of the input. `passes`: over a
// line.
template <typename To, typename Line>
PreparedKernel MakeLines(const Prepare& p, int64_t passes, const Line& line) {
  const int64_t axis = p.attributes().Int("axis", 0);
  const AxisSplit from = SplitAt(p.input(0).dims, axis);
  const AxisSplit to = SplitAt(p.output(0).dims, axis);
  const auto make = [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    using R = std::conditional_t<std::is_void_v<To>, T, To>;
    return MakeKernel([=](const KernelArgs& args) {
      if (to.size == 0) return;
      ParallelEach(from.outer * from.inner, from.size * passes, [&](int64_t i) {
        line(In<T>(args, 0) + LineStart(from, i),
             Out<R>(args, 0) + LineStart(to, i), from.size, from.inner);
      });
    });
  };
  if (p.input(0).dtype == DType::kF32) return make(float{});
  return WithIndex(p, p.input(0).dtype, make);
}

template <bool kLargest>
PreparedKernel Extreme(const Prepare& p) {
  return MakeLines<void>(p, 1, ExtremeLine{kLargest});
}

PreparedKernel CumSum(const Prepare& p) {
  return MakeLines<void>(p, 1,
                         CumSumLine{p.attributes().Int("exclusive", 0) != 0,
                                    p.attributes().Int("reverse", 0) != 0});
}

PreparedKernel TopK(const Prepare& p) {
  const int64_t k = p.attributes().Int("k", 1);
  return MakeLines<int64_t>(p, k,
                            TopKLine{k, p.attributes().Int("largest", 1) != 0,
                                     p.attributes().Int("last", 0) != 0});
}

constexpr KernelEntry kAlongAxisKernels[] = {{"ReduceMax", Extreme<true>},
                                             {"ReduceMin", Extreme<false>},
                                             {"CumSum", CumSum},
                                             {"TopK", TopK}};

}  // namespace

absl::Span<const KernelEntry> AlongAxisKernels() { return kAlongAxisKernels; }

}  // namespace loadline::executor::cpu
