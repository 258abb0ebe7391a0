// Seeded problems of the tests of Solve, of sizes and kinds that change with
// the seed.
#ifndef LOADLINE_TESTS_PLANNER_SUPPORT_SOLVE_SAMPLES_H_
#define LOADLINE_TESTS_PLANNER_SUPPORT_SOLVE_SAMPLES_H_

#include <cstdint>

#include "planner/problem/plan.h"
#include "planner/problem/problem.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {

// Keeps thousands of solves quick; so do bounds without linear programs, where
// bounds do not matter.
inline constexpr int64_t kWork = 4'000;

inline Problem SeededProblem(uint64_t seed) {
  return RandomProblem(seed, 6 + static_cast<int>(seed % 40), seed % 3 != 0,
                       seed % 4 != 1);
}

inline int64_t Percent(const Plan& all, int percent) {
  return all.predicted.peak_bytes / 100 * percent;
}

}  // namespace loadline::planner

#endif  // LOADLINE_TESTS_PLANNER_SUPPORT_SOLVE_SAMPLES_H_
