// Tiny random problems that the oracle solves in milliseconds, with everything
// that a bound must allow for.
#ifndef LOADLINE_TESTS_PLANNER_SUPPORT_TINY_PROBLEM_H_
#define LOADLINE_TESTS_PLANNER_SUPPORT_TINY_PROBLEM_H_

#include <cstdint>

#include "planner/problem/problem.h"

namespace loadline::planner {

struct TinyFeatures {
  bool codecs = false;    // values with one or two codecs
  bool copies = false;    // a machine, any factor when both lanes move
  bool versions = false;  // a persistent value updated one to three times
};

// Valid, three to eight nodes; some run in no time, in place, or only once.
// Alignment 1; addresses only without copies and codecs. The same for the same
// arguments on every machine.
Problem TinyProblem(uint64_t seed, const TinyFeatures& features);

}  // namespace loadline::planner

#endif  // LOADLINE_TESTS_PLANNER_SUPPORT_TINY_PROBLEM_H_
