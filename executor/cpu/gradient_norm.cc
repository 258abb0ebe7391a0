// Sums of squares, and the factor that clips a global norm. The blocks of a sum
// follow from its length alone. Tested in tests/conformance/.
#include <algorithm>

#include "executor/cpu/families.h"
#include "executor/cpu/parallel.h"
#include "executor/ops/optimizer_formulas.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cpu {
namespace {

// More parts of a sum would not make it faster.
constexpr int64_t kMostNormParts = 256;

PreparedKernel SumSquares(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const int64_t n = p.input(0).elements();
  const int64_t block =
      std::max(kElementBlock, (n + kMostNormParts - 1) / kMostNormParts);
  return MakeKernel([n, block](const KernelArgs& args) {
    const float* x = In(args, 0);
    double parts[kMostNormParts] = {};
    ParallelFor(n, block, [&parts, x, block](int64_t begin, int64_t end) {
      parts[begin / block] =
          SumOf(begin, end, [x](int64_t i) { return x[i] * x[i]; });
    });
    double sum = 0;
    for (double part : parts) sum += part;
    *Out(args, 0) = static_cast<float>(sum);
  });
}

PreparedKernel ClipFactor(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const int64_t n = p.input(0).elements();
  const double max_norm = p.attributes().Float("max_norm", 1);
  return MakeKernel([n, max_norm](const KernelArgs& args) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += double{In(args, 0)[i]};
    *Out(args, 0) = ClipFactorOf(sum, max_norm);
  });
}

constexpr KernelEntry kGradientNormKernels[] = {{"SumSquares", SumSquares},
                                                {"ClipFactor", ClipFactor}};

}  // namespace

absl::Span<const KernelEntry> GradientNormKernels() {
  return kGradientNormKernels;
}

}  // namespace loadline::executor::cpu
