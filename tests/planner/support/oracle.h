// The exact least step time of a tiny problem, by search over all states of
// the device: the oracle against which bounds and plans are tested.
#ifndef LOADLINE_TESTS_PLANNER_SUPPORT_ORACLE_H_
#define LOADLINE_TESTS_PLANNER_SUPPORT_ORACLE_H_

#include <cstdint>
#include <optional>

#include "planner/problem/problem.h"

namespace loadline::planner {

struct Oracle {
  // Least time of any plan that keeps live bytes within the budget; empty:
  // there is none. Not rounded.
  std::optional<double> step_ns;
  int64_t states = 0;    // visited
  bool gave_up = false;  // the limit on states was met: nothing is known
};

// Every order, every rerun, every copy on both lanes with its exact timing
// (also inside a node's run), every home of every persistent value, in-place
// outputs and updates, variants, and codecs on the device. Of addresses it
// knows one rule: the last version of a persistent value is made in the place
// in which the first one was at the beginning. Copies of the first version, and
// other versions, may lie anywhere. With addresses the result is therefore
// a lower bound on the optimum. Left out, as of no use or nearly: two instances
// of one value at once, encoded copies on the host. Requires: alignment 1, at
// most 32 nodes and values, times and rates whose quotients are exact in binary
// or nearly so (results are exact to 1e-6 ns).
Oracle FindLeastStep(const Problem& problem, int64_t budget_bytes,
                     int64_t most_states);

}  // namespace loadline::planner

#endif  // LOADLINE_TESTS_PLANNER_SUPPORT_ORACLE_H_
