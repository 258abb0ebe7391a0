// Dropout and RandomUniform. Element e, counted from the attribute `offset`, is
// kept where word e % 4 of Philox's output is at least ratio * 2^32. The
// counter's words are e / 4 (low, high), the step and the salt (both modulo
// 2^32); the key is the run's seed. The mask needs no memory: the gradient and
// recomputations draw it again. Tested in tests/conformance/ and
// tests/executor/ops/kernel_philox_test.cc.
#include <algorithm>

#include "executor/cpu/dropout_mask.h"
#include "executor/cpu/families.h"
#include "executor/cpu/parallel.h"
#include "executor/ops/bf16.h"
#include "executor/ops/dispatch.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cpu {
namespace {

constexpr int64_t kBatchElements = DropoutMask::kBatchElements;

// Calls body(at, count, word) for runs that cover the elements [begin, end).
// The `count` elements from `at` on take the random words from number `word` on
// of the batch mask.Words(mask.settings.offset + at - word).
template <typename Body>
void ForBatches(const DropoutMask& mask, int64_t begin, int64_t end,
                const Body& body) {
  for (int64_t at = begin; at < end;) {
    const int64_t word = (mask.settings.offset + at) % 4;
    const int64_t count = std::min(kBatchElements - word, end - at);
    body(at, count, word);
    at += count;
  }
}

// `count` elements whose factors begin with that of word `word`.
template <typename T>
void DropBatch(const DropoutMask& m, const T* x, T* y, int64_t at,
               int64_t count, int64_t word) {
  alignas(64) float factors[kBatchElements];
  m.Factors(m.settings.offset + at - word, factors);
  if (count == kBatchElements) {
#pragma omp simd
    for (int64_t i = 0; i < kBatchElements; ++i) {
      y[at + i] = x[at + i] * factors[i];
    }
  } else {
    for (int64_t i = 0; i < count; ++i) {
      y[at + i] = x[at + i] * factors[word + i];
    }
  }
}

template <typename T>
void Drop(const DropoutMask& any_step, int64_t n, const KernelArgs& args) {
  const T* x = In<T>(args, 0);
  T* y = Out<T>(args, 0);
  if (any_step.settings.threshold == 0) {
    if (x != y) std::copy(x, x + n, y);
    return;
  }
  const DropoutMask mask = any_step.At(*args.scalars);
  ParallelFor(n, kElementBlock, [&](int64_t begin, int64_t end) {
    ForBatches(mask, begin, end, [&](int64_t at, int64_t count, int64_t word) {
      DropBatch(mask, x, y, at, count, word);
    });
  });
}

PreparedKernel Dropout(const Prepare& p) {
  const int64_t n = p.output(0).elements();
  LOADLINE_ASSIGN_OR_RETURN(const DropoutSettings settings,
                            MakeDropoutSettings(p));
  const DropoutMask mask = {settings};
  return WithFloat<Bf16>(
      p, p.output(0).dtype, [&](auto type) -> PreparedKernel {
        using T = decltype(type);
        return MakeKernel(
            [mask, n](const KernelArgs& args) { Drop<T>(mask, n, args); });
      });
}

PreparedKernel RandomUniform(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const int64_t n = p.output(0).elements();
  LOADLINE_ASSIGN_OR_RETURN(const DropoutSettings settings,
                            MakeDropoutSettings(p));
  return MakeKernel([any_step = DropoutMask{settings},
                     n](const KernelArgs& args) {
    const float range = *In(args, 0);
    float* y = Out(args, 0);
    const DropoutMask words_of = any_step.At(*args.scalars);
    ParallelFor(n, kElementBlock, [&](int64_t begin, int64_t end) {
      ForBatches(words_of, begin, end,
                 [&](int64_t at, int64_t count, int64_t word) {
                   const PhiloxBatch words =
                       words_of.Words(words_of.settings.offset + at - word);
                   for (int64_t i = 0; i < count; ++i) {
                     const int64_t w = word + i;
                     y[at + i] = range * UniformOf(words.words[w % 4][w / 4]);
                   }
                 });
    });
  });
}

constexpr KernelEntry kDropoutKernels[] = {{"Dropout", Dropout},
                                           {"RandomUniform", RandomUniform}};

}  // namespace

absl::Span<const KernelEntry> DropoutKernels() { return kDropoutKernels; }

}  // namespace loadline::executor::cpu
