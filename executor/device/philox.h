// Philox 4x32-10: a counter-based random generator. Ten rounds turn a 128-bit
// counter and a 64-bit key into four random words. It has no state, so a
// dropout mask can be computed again anywhere in any order.
// Source: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel Random Numbers: As
// Easy as 1, 2, 3", SC 2011.
#ifndef LOADLINE_EXECUTOR_DEVICE_PHILOX_H_
#define LOADLINE_EXECUTOR_DEVICE_PHILOX_H_

#include <cstdint>

#include "models/host_device.h"

namespace loadline::executor {

// Counters handled together, word by word, so that the rounds vectorize.
inline constexpr int kPhiloxBatch = 16;

// words[w][i]: word w of counter i; the random words replace the counters.
template <int kCounters>
struct PhiloxCounters {
  uint32_t words[4][kCounters];
};
using PhiloxBatch = PhiloxCounters<kPhiloxBatch>;

template <int kCounters>
LOADLINE_HOST_DEVICE inline void PhiloxRounds(PhiloxCounters<kCounters>& b,
                                              uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
#ifdef _OPENMP
#pragma omp simd
#endif
    for (int i = 0; i < kCounters; ++i) {
      const uint64_t p0 = uint64_t{0xD2511F53u} * b.words[0][i];
      const uint64_t p1 = uint64_t{0xCD9E8D57u} * b.words[2][i];
      const uint32_t w1 = b.words[1][i];
      const uint32_t w3 = b.words[3][i];
      b.words[0][i] = static_cast<uint32_t>(p1 >> 32) ^ w1 ^ key0;
      b.words[1][i] = static_cast<uint32_t>(p1);
      b.words[2][i] = static_cast<uint32_t>(p0 >> 32) ^ w3 ^ key1;
      b.words[3][i] = static_cast<uint32_t>(p0);
    }
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
}

// A number in [0, 1) from a random word: its upper 24 bits, which a float
// holds.
LOADLINE_HOST_DEVICE inline float UniformOf(uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_DEVICE_PHILOX_H_
