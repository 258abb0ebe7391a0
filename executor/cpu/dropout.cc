// Dropout. Element e is kept where word e % 4 of Philox's output is at least
// ratio * 2^32. The counter's words are e / 4 (low, high), the step and the
// salt (both modulo 2^32); the key is the run's seed. So the mask costs no
// bytes: the gradient, or a recomputation, draws the same one.
// Tested in tests/conformance/ and tests/executor/kernel_philox_test.cc.
#include <algorithm>

#include "executor/cpu/families.h"
#include "executor/cpu/parallel.h"
#include "executor/operator_shapes.h"
#include "executor/philox.h"
#include "planner/status_macros.h"

namespace loadline::executor::cpu {
namespace {

constexpr int64_t kBatchElements = 4 * kPhiloxBatch;

struct Mask {
  uint64_t seed;
  uint32_t step;
  DropoutSettings settings;
};

// Elements [begin, begin + n), n at most a batch, begin a multiple of one.
void DropBatch(const Mask& m, const float* x, float* y, int64_t begin,
               int64_t n) {
  PhiloxBatch batch;
  const uint64_t first = static_cast<uint64_t>(begin) / 4;
  for (int i = 0; i < kPhiloxBatch; ++i) {
    const uint64_t counter = first + static_cast<uint64_t>(i);
    batch.words[0][i] = static_cast<uint32_t>(counter);
    batch.words[1][i] = static_cast<uint32_t>(counter >> 32);
    batch.words[2][i] = m.step;
    batch.words[3][i] = m.settings.salt;
  }
  PhiloxRounds(batch, static_cast<uint32_t>(m.seed),
               static_cast<uint32_t>(m.seed >> 32));
  alignas(64) float factors[kBatchElements];
  for (int i = 0; i < kPhiloxBatch; ++i) {
    for (int w = 0; w < 4; ++w) {
      factors[4 * i + w] =
          batch.words[w][i] >= m.settings.threshold ? m.settings.scale : 0.0f;
    }
  }
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
  LOADLINE_ASSIGN_OR_RETURN(const DropoutSettings settings,
                            MakeDropoutSettings(p));
  return MakeKernel([=](const KernelArgs& args) {
    const float* x = In(args, 0);
    float* y = Out(args, 0);
    if (settings.threshold == 0) {
      if (x != y) std::copy(x, x + n, y);
      return;
    }
    const Mask mask = {args.scalars->seed,
                       static_cast<uint32_t>(args.scalars->step), settings};
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
