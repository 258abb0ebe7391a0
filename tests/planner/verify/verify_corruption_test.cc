// Verify against thousands of seeded corruptions of valid plans.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "planner/problem/plan.h"
#include "planner/problem/problem.h"
#include "planner/solve/solve.h"
#include "planner/verify/verify.h"
#include "tests/planner/support/random_problem.h"
#include "tests/planner/support/simple_plan.h"
#include "tests/planner/verify/corrupt_plan.h"

namespace loadline::planner {
namespace {

// Corrupts the plan in every way, `tries` times each; counts by kind.
void CorruptAndReject(const Problem& problem, const Plan& plan, int tries,
                      TestRandom& random, std::map<Corruption, int>& count) {
  ASSERT_EQ(Verify(problem, plan), absl::OkStatus());
  for (Corruption kind : AllCorruptions()) {
    for (int i = 0; i < tries; ++i) {
      const std::optional<Plan> bad = CorruptPlan(problem, plan, kind, random);
      if (!bad.has_value()) continue;
      ++count[kind];
      const absl::Status status = Verify(problem, *bad);
      ASSERT_EQ(status.code(), absl::StatusCode::kFailedPrecondition)
          << "accepted corruption " << static_cast<int>(kind) << ":\n"
          << PlanToJson(*bad, problem);
      // Names what: a thing with its id, or the field.
      EXPECT_NE(std::string(status.message()).find_first_of("0123456789'"),
                std::string::npos)
          << status;
    }
  }
}

TEST(Verify, RejectsThousandsOfCorruptionsOfSimplePlans) {
  std::map<Corruption, int> count;
  TestRandom random(1);
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Problem problem = RandomProblem(
        seed, 10 + static_cast<int>(seed % 40), seed % 3 != 0, seed % 4 != 0);
    CorruptAndReject(problem, SimplePlan(problem, seed), 6, random, count);
    if (HasFatalFailure()) return;
  }
  int total = 0;
  for (Corruption kind : AllCorruptions()) {
    EXPECT_GE(count[kind], 30) << "corruption " << static_cast<int>(kind);
    total += count[kind];
  }
  EXPECT_GT(total, 5000);
}

TEST(Verify, RejectsThousandsOfCorruptionsOfTheSolversPlans) {
  std::map<Corruption, int> count;
  TestRandom random(2);
  int total = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Problem problem =
        RandomProblem(seed, 12 + static_cast<int>(seed), seed % 3 != 0, true);
    if (seed % 2 == 0) AddRandomChoices(seed, problem);
    const auto keep = KeepEverything(problem);
    ASSERT_TRUE(keep.ok()) << keep.status();
    SolveOptions options;
    options.work_limit = 20'000;
    options.bound_work_limit = 0;
    for (int percent : {100, 75, 50}) {
      options.budget_bytes = keep->budget_bytes * percent / 100;
      const auto plan = Solve(problem, options);
      if (!plan.ok()) continue;  // this budget cannot be met
      CorruptAndReject(problem, *plan, 3, random, count);
      if (HasFatalFailure()) return;
    }
  }
  for (const auto& [kind, times] : count) total += times;
  EXPECT_GT(total, 2000);
}

}  // namespace
}  // namespace loadline::planner
