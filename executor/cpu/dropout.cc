// Dropout. Its mask is counted, not stored (dropout_mask.h), and so costs no
// bytes: the gradient, or a recomputation, draws the same one.
// Tested in tests/conformance/ and tests/executor/kernel_philox_test.cc.
#include <algorithm>

#include "executor/cpu/dropout_mask.h"
#include "executor/cpu/families.h"
#include "executor/cpu/parallel.h"
#include "planner/status_macros.h"

namespace loadline::executor::cpu {
namespace {

constexpr int64_t kBatchElements = DropoutMask::kBatchElements;

// Elements [begin, begin + n), n at most a batch, begin a multiple of one.
void DropBatch(const DropoutMask& m, const float* x, float* y, int64_t begin,
               int64_t n) {
  alignas(64) float factors[kBatchElements];
  m.Factors(begin, factors);
  if (n == kBatchElements) {
#pragma omp simd
    for (int64_t i = 0; i < kBatchElements; ++i) {
      y[begin + i] = x[begin + i] * factors[i];
    }
  } else {
    for (int64_t i = 0; i < n; ++i) y[begin + i] = x[begin + i] * factors[i];
  }
}

PreparedKernel Dropout(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const int64_t n = p.output(0).elements();
  const double ratio = p.attributes().Float("ratio", 0.5);
  if (!(ratio >= 0 && ratio <= 1)) return p.Invalid("ratio outside [0, 1]");
  const DropoutMask any_step = DropoutMask::From(p.attributes(), 0.5);
  return MakeKernel([=](const KernelArgs& args) {
    const float* x = In(args, 0);
    float* y = Out(args, 0);
    if (any_step.threshold == 0) {
      if (x != y) std::copy(x, x + n, y);
      return;
    }
    const DropoutMask mask = any_step.At(*args.scalars);
    ParallelFor(n, kElementBlock, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; at += kBatchElements) {
        DropBatch(mask, x, y, at, std::min(kBatchElements, end - at));
      }
    });
  });
}

constexpr KernelEntry kKernels[] = {{"Dropout", Dropout}};

}  // namespace

absl::Span<const KernelEntry> DropoutKernels() { return kKernels; }

}  // namespace loadline::executor::cpu
