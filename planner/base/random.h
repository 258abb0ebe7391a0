// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
// Generators, 2014), and a small seeded generator for the searches. Both give
// the same numbers on every platform; the distributions of <random> do not.
#ifndef LOADLINE_PLANNER_BASE_RANDOM_H_
#define LOADLINE_PLANNER_BASE_RANDOM_H_

#include <cstdint>

namespace loadline::planner {

// From one state of the generator to the next.
inline constexpr uint64_t kSplitMix64Step = 0x9E3779B97F4A7C15;

// The number that the generator gives in this state; also a hash.
constexpr uint64_t SplitMix64(uint64_t state) {
  uint64_t z = state + kSplitMix64Step;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * kSplitMix64Step + 1) {}

  uint64_t Bits() {
    const uint64_t bits = SplitMix64(state_);
    state_ += kSplitMix64Step;
    return bits;
  }
  // In [0, count); requires 0 < count.
  int Below(int count) {
    return static_cast<int>(((Bits() >> 32) * static_cast<uint64_t>(count)) >>
                            32);
  }
  // In [0, 1).
  double Uniform() { return static_cast<double>(Bits() >> 11) * 0x1.0p-53; }

 private:
  uint64_t state_;
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BASE_RANDOM_H_
