// Which elements a dropout keeps. Element e is kept where word e % 4 of
// Philox's output is at least ratio * 2^32. The counter's words are e / 4 (low,
// high), the step and the salt (both modulo 2^32); the key is the run's seed.
#ifndef LOADLINE_EXECUTOR_CPU_DROPOUT_MASK_H_
#define LOADLINE_EXECUTOR_CPU_DROPOUT_MASK_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "executor/kernel.h"
#include "executor/philox.h"
#include "models/attributes.h"

namespace loadline::executor::cpu {

struct DropoutMask {
  static constexpr int64_t kBatchElements = 4 * kPhiloxBatch;

  uint32_t salt = 0;
  uint64_t threshold = 0;  // in [0, 2^32]; 0: everything is kept
  float scale = 1;         // of what is kept
  uint64_t seed = 0;
  uint32_t step = 0;

  // From the attributes `ratio`, in [0, 1], and `salt`.
  static DropoutMask From(const models::Attributes& attributes,
                          double default_ratio) {
    const double ratio = attributes.Float("ratio", default_ratio);
    DropoutMask mask;
    mask.salt = static_cast<uint32_t>(attributes.Int("salt", 0));
    mask.threshold = static_cast<uint64_t>(std::llround(std::ldexp(ratio, 32)));
    mask.scale = ratio < 1 ? static_cast<float>(1.0 / (1.0 - ratio)) : 0.0f;
    return mask;
  }

  // The same mask in one step of a run.
  DropoutMask At(const StepScalars& scalars) const {
    DropoutMask mask = *this;
    mask.seed = scalars.seed;
    mask.step = static_cast<uint32_t>(scalars.step);
    return mask;
  }

  // What elements [begin, begin + kBatchElements) are multiplied by; begin is a
  // multiple of 4.
  void Factors(int64_t begin, float* factors) const {
    PhiloxBatch batch;
    const uint64_t first = static_cast<uint64_t>(begin) / 4;
    for (int i = 0; i < kPhiloxBatch; ++i) {
      const uint64_t counter = first + static_cast<uint64_t>(i);
      batch.words[0][i] = static_cast<uint32_t>(counter);
      batch.words[1][i] = static_cast<uint32_t>(counter >> 32);
      batch.words[2][i] = step;
      batch.words[3][i] = salt;
    }
    PhiloxRounds(batch, static_cast<uint32_t>(seed),
                 static_cast<uint32_t>(seed >> 32));
    for (int i = 0; i < kPhiloxBatch; ++i) {
      for (int w = 0; w < 4; ++w) {
        factors[4 * i + w] = batch.words[w][i] >= threshold ? scale : 0.0f;
      }
    }
  }
};

}  // namespace loadline::executor::cpu

#endif  // LOADLINE_EXECUTOR_CPU_DROPOUT_MASK_H_
