// A second reading of "Valid means" in docs/formats.md, rule by rule, by the
// slowest method that is plain to see. It shares nothing with planner/verify
// but the replay, whose figures rule 12 compares.
#ifndef LOADLINE_TESTS_CAMPAIGN_PLAN_JUDGE_H_
#define LOADLINE_TESTS_CAMPAIGN_PLAN_JUDGE_H_

#include "planner/problem/plan.h"
#include "planner/problem/problem.h"

namespace loadline::planner {

// The first rule, by its number in the format, that the plan breaks; 0: it is
// valid; -1: an id of nothing. For problems with addresses and plans without a
// certificate.
int BrokenRule(const Problem& problem, const Plan& plan);

}  // namespace loadline::planner

#endif  // LOADLINE_TESTS_CAMPAIGN_PLAN_JUDGE_H_
