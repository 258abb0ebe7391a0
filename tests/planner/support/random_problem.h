// Seeded problems shaped like training steps, for property tests: a layered
// forward pass with skips, a loss, a backward pass that reads saved
// activations, and (where asked) weights with optimizer state updated in place.
//
// Example:
//   planner::Problem problem = planner::RandomProblem(7, 40, true, true);
#ifndef LOADLINE_TESTS_PLANNER_SUPPORT_RANDOM_PROBLEM_H_
#define LOADLINE_TESTS_PLANNER_SUPPORT_RANDOM_PROBLEM_H_

#include <cstdint>

#include "planner/problem/problem.h"

namespace loadline::planner {

// A valid problem of about `nodes` nodes (at least 3), the same for the same
// arguments on every machine. `persistent`: weights, optimizer state and the
// nodes that update them. `copies`: a machine with copy rates; without it the
// problem has no machine. Some values have zero bytes, some nodes have a
// workspace, may not run again, or may work in place; file ids have gaps.
Problem RandomProblem(uint64_t seed, int nodes, bool persistent, bool copies);

// Adds codecs to some values (lossless or not, some of no use) and variants to
// some nodes (exact or not: faster in more workspace, slower in less).
void AddRandomChoices(uint64_t seed, Problem& problem);

// The generator behind it, so that tests draw the same numbers everywhere
// (the standard library's distributions differ between libraries).
class TestRandom {
 public:
  explicit TestRandom(uint64_t seed) : state_(seed) {}

  // 64 random bits (splitmix64, Steele et al. 2014).
  uint64_t Next();
  // Uniform in [low, high].
  int64_t In(int64_t low, int64_t high);
  // True once in `times` draws on average.
  bool OneIn(int64_t times) { return In(1, times) == 1; }

 private:
  uint64_t state_;
};

}  // namespace loadline::planner

#endif  // LOADLINE_TESTS_PLANNER_SUPPORT_RANDOM_PROBLEM_H_
