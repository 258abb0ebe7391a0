// Seeded corruptions of valid plans: each makes the plan invalid by its very
// construction, so a proof that accepts one is wrong.
//
// Example:
//   std::optional<Plan> bad = CorruptPlan(problem, plan, kind, random);
//   if (bad) EXPECT_FALSE(Verify(problem, *bad).ok());
#ifndef LOADLINE_TESTS_PLANNER_VERIFY_CORRUPT_PLAN_H_
#define LOADLINE_TESTS_PLANNER_VERIFY_CORRUPT_PLAN_H_

#include <optional>
#include <vector>

#include "planner/problem/plan.h"
#include "planner/problem/problem.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {

enum class Corruption {
  kWrongProblem,      // another problem's hash
  kWrongPrediction,   // one predicted number off by a thousandth
  kBoundTooHigh,      // a "proven" bound above what the plan reaches
  kOverBudget,        // arena larger than the budget
  kOversize,          // a buffer larger than its value
  kMisaligned,        // an offset off the alignment
  kOutsideArena,      // a buffer that ends beyond its space
  kHostSpace,         // a node's buffer on the host
  kWrongAddress,      // two buffers that one step needs at once share bytes
  kShiftedHome,       // a weight's last version one alignment unit off
  kWrongValue,        // a node is given another value's buffer
  kStaleVersion,      // a node is given an older version of a weight
  kSwappedBuffers,    // two buffers exchange their values
  kWrongLane,         // a step on another lane
  kDroppedNode,       // a node that never runs
  kWrittenTwice,      // a step done a second time into the same buffers
  kDroppedCopy,       // a copy left out
  kReorderedReader,   // a reader before its writer
  kLateReader,        // a reader of a weight after its update in place
  kMissingWait,       // a copy and its reader (or writer) no longer ordered
  kWaitCycle,         // a step that waits for itself or a later one
  kMissingWorkspace,  // a node without the workspace it needs
  kWrongSequence,     // `sequence` without its last entry
  kSecondDecision,    // two decisions about one value
  kDanglingId,        // an id of nothing
};
std::vector<Corruption> AllCorruptions();

// `plan` (valid) made invalid in the given way, at a place drawn from `random`;
// nullopt where the plan has no place for it. The prediction is redone where
// the corrupted steps still replay, so that it is not what gives it away.
std::optional<Plan> CorruptPlan(const Problem& problem, const Plan& plan,
                                Corruption kind, TestRandom& random);

}  // namespace loadline::planner

#endif  // LOADLINE_TESTS_PLANNER_VERIFY_CORRUPT_PLAN_H_
