// ReduceMax, ReduceMin, CumSum and TopK with the CPU's bits: a thread for each
// line. Tested in tests/conformance/.
#include <type_traits>

#include "executor/cuda/families.h"
#include "executor/cuda/launch.h"
#include "executor/cuda/numbers.h"
#include "executor/cuda/types.h"
#include "executor/ops/dispatch.h"
#include "executor/ops/line_formulas.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cuda {
namespace {

template <typename Line, typename T, typename R>
__global__ void LinesKernel(AxisSplit from, AxisSplit to, Line line, const T* x,
                            R* y) {
  for (int64_t i = GridThread(); i < from.outer * from.inner;
       i += GridThreads()) {
    line(x + LineStart(from, i), y + LineStart(to, i), from.size, from.inner);
  }
}

// `To`: element type of the output; void: that of the input.
template <typename To, typename Line>
PreparedKernel MakeLines(const Prepare& p, const Line& line) {
  const int64_t axis = p.attributes().Int("axis", 0);
  const AxisSplit from = SplitAt(p.input(0).dims, axis);
  const AxisSplit to = SplitAt(p.output(0).dims, axis);
  const DType result = std::is_void_v<To> ? p.input(0).dtype : DType::kI64;
  LOADLINE_RETURN_IF_ERROR(RequireType(p, result, {}, {0}));
  const auto make = [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    using R = std::conditional_t<std::is_void_v<To>, T, To>;
    return MakeKernel([=](const KernelArgs& args, const LaunchContext& launch) {
      const int64_t lines = from.outer * from.inner;
      if (lines == 0 || to.size == 0) return absl::OkStatus();
      return LaunchKernel(LinesKernel<Line, T, R>, GridFor(lines), kBlock, 0,
                          launch.stream, from, to, line, In<T>(args, 0),
                          Out<R>(args, 0));
    });
  };
  if (p.input(0).dtype == DType::kF32) return make(float{});
  return WithIndex(p, p.input(0).dtype, make);
}

template <bool kLargest>
PreparedKernel Extreme(const Prepare& p) {
  return MakeLines<void>(p, ExtremeLine{kLargest});
}

PreparedKernel CumSum(const Prepare& p) {
  return MakeLines<void>(p, CumSumLine{p.attributes().Int("exclusive", 0) != 0,
                                       p.attributes().Int("reverse", 0) != 0});
}

PreparedKernel TopK(const Prepare& p) {
  return MakeLines<int64_t>(p, TopKLine{p.attributes().Int("k", 1),
                                        p.attributes().Int("largest", 1) != 0,
                                        p.attributes().Int("last", 0) != 0});
}

constexpr KernelEntry kKernels[] = {{"ReduceMax", Extreme<true>},
                                    {"ReduceMin", Extreme<false>},
                                    {"CumSum", CumSum},
                                    {"TopK", TopK}};

}  // namespace

absl::Span<const KernelEntry> AlongAxisKernels() { return kKernels; }

}  // namespace loadline::executor::cuda
