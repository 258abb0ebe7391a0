// Runs a plan on memory that knows what every byte holds: a judge that reads no
// rule, but sees whether a step finds what it reads.
#ifndef LOADLINE_TESTS_CAMPAIGN_WALK_PLAN_H_
#define LOADLINE_TESTS_CAMPAIGN_WALK_PLAN_H_

#include <cstdint>
#include <string>

#include "planner/problem/plan.h"
#include "planner/problem/problem.h"

namespace loadline::planner {

// Two training steps, one after the other, in one order of begins and ends that
// the lanes allow, drawn from `seed`. What a step writes is garbage from its
// begin to its end. The first thing that goes wrong: a read of something else
// than the value, at its begin or its end, two writers at a time, an output or
// an update that is not there at the end, a step that can never begin. Empty:
// nothing. For problems with addresses, whose ids exist in the plan.
std::string WalkPlan(const Problem& problem, const Plan& plan, uint64_t seed);

}  // namespace loadline::planner

#endif  // LOADLINE_TESTS_CAMPAIGN_WALK_PLAN_H_
