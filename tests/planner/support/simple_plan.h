// A plan-maker for tests that is too simple to be wrong: the given order, a
// fresh address for every buffer, updates in place; and, by the seed, some
// values copied out and back to the same address and some nodes run again.
#ifndef LOADLINE_TESTS_PLANNER_SUPPORT_SIMPLE_PLAN_H_
#define LOADLINE_TESTS_PLANNER_SUPPORT_SIMPLE_PLAN_H_

#include <cstdint>

#include "planner/problem/plan.h"
#include "planner/problem/problem.h"

namespace loadline::planner {

// A valid plan for a valid problem with addresses whose updates can all be in
// place. Copies only where the machine has rates.
Plan SimplePlan(const Problem& problem, uint64_t seed);

// Writes what Replay gives (and the hash and name) into the plan.
void Predict(const Problem& problem, Plan& plan);

}  // namespace loadline::planner

#endif  // LOADLINE_TESTS_PLANNER_SUPPORT_SIMPLE_PLAN_H_
