// The parts of the proof, each one rule family. All need a valid problem and
// CheckReferences; all return FailedPrecondition naming what is wrong.
#ifndef LOADLINE_PLANNER_VERIFY_VERIFY_PARTS_H_
#define LOADLINE_PLANNER_VERIFY_VERIFY_PARTS_H_

#include "absl/status/status.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"
#include "planner/verify/verify_facts.h"

namespace loadline::planner {

// Each buffer lies inside its space on an aligned offset.
absl::Status CheckPlaces(const Problem& problem, const Plan& plan);

// Buffers that no step writes are inputs of the problem, in their right place;
// every persistent value has exactly one; every workspace has its step.
absl::Status CheckInitialBuffers(const Problem& problem, const Plan& plan,
                                 const PlanFacts& facts);

// Every step is on its lane and moves between buffers of the right value,
// contents, bytes and space.
absl::Status CheckSteps(const Problem& problem, const Plan& plan,
                        const PlanFacts& facts);

// Every read of a buffer comes after its write, in any timing.
absl::Status CheckReadsAfterWrite(const Problem& problem, const Plan& plan,
                                  const PlanFacts& facts);

// Of two buffers that share bytes, every access of one comes before every
// access of the other, in any timing; in-place pairs are the one exception.
absl::Status CheckOverlaps(const Problem& problem, const Plan& plan,
                           const PlanFacts& facts);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_VERIFY_VERIFY_PARTS_H_
