// Which elements a dropout keeps. Element e is kept where word e % 4 of
// Philox's output is at least ratio * 2^32. The counter's words are e / 4 (low,
// high), the step and the salt (both modulo 2^32); the key is the run's seed.
#ifndef LOADLINE_EXECUTOR_CPU_DROPOUT_MASK_H_
#define LOADLINE_EXECUTOR_CPU_DROPOUT_MASK_H_

#include <cstdint>

#include "executor/device/kernel.h"
#include "executor/device/philox.h"
#include "executor/ops/operator_shapes.h"

namespace loadline::executor::cpu {

struct DropoutMask {
  static constexpr int64_t kBatchElements = 4 * kPhiloxBatch;

  DropoutSettings settings;
  uint64_t seed = 0;
  uint32_t step = 0;

  // The mask of one step of a run.
  DropoutMask At(const StepScalars& scalars) const {
    DropoutMask mask = *this;
    mask.seed = scalars.seed;
    mask.step = static_cast<uint32_t>(scalars.step);
    return mask;
  }

  // Random words of elements [begin, begin + kBatchElements): word w of counter
  // i belongs to element begin + 4 i + w. begin must be a multiple of 4.
  PhiloxBatch Words(int64_t begin) const {
    PhiloxBatch batch;
    const uint64_t first = static_cast<uint64_t>(begin) / 4;
    for (int i = 0; i < kPhiloxBatch; ++i) {
      const uint64_t counter = first + static_cast<uint64_t>(i);
      batch.words[0][i] = static_cast<uint32_t>(counter);
      batch.words[1][i] = static_cast<uint32_t>(counter >> 32);
      batch.words[2][i] = step;
      batch.words[3][i] = settings.salt;
    }
    PhiloxRounds(batch, static_cast<uint32_t>(seed),
                 static_cast<uint32_t>(seed >> 32));
    return batch;
  }

  // Writes the factors of the same elements.
  void Factors(int64_t begin, float* factors) const {
    const PhiloxBatch batch = Words(begin);
    for (int i = 0; i < kPhiloxBatch; ++i) {
      for (int w = 0; w < 4; ++w) {
        factors[4 * i + w] =
            batch.words[w][i] >= settings.threshold ? settings.scale : 0.0f;
      }
    }
  }
};

}  // namespace loadline::executor::cpu

#endif  // LOADLINE_EXECUTOR_CPU_DROPOUT_MASK_H_
