// The proof that a plan is valid. Follows the definition of *valid* in the
// format rule by rule, shares only Problem and Plan with the solvers, and
// trusts nothing in the plan.
#ifndef LOADLINE_PLANNER_VERIFY_VERIFY_H_
#define LOADLINE_PLANNER_VERIFY_VERIFY_H_

#include "absl/status/status.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"

namespace loadline::planner {

// OK if the plan is valid for the problem (docs/formats.md, "Valid means").
// Otherwise FailedPrecondition whose message names what is wrong and where
// (step, buffer, value, node, by id and name).
absl::Status Verify(const Problem& problem, const Plan& plan);

class ReplayObserver;  // replay.h

// What replaying the steps gives: the naive event simulation of the three
// lanes. `observer` may be null, and sees each event. Errors: an invalid
// problem, steps that wait for each other, references to nothing.
absl::StatusOr<Prediction> Replay(const Problem& problem, const Plan& plan,
                                  ReplayObserver* observer = nullptr);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_VERIFY_VERIFY_H_
