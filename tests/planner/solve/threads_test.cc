// Plans do not depend on the number of threads, and larger budgets are never
// slower with any number.
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "planner/solve/solve.h"
#include "planner/verify/verify.h"
#include "tests/planner/support/random_problem.h"
#include "tests/planner/support/transformer_problem.h"

namespace loadline::planner {
namespace {

// The plan as a file, or why there is none.
std::string PlanText(const Problem& problem, const SolveOptions& options) {
  const absl::StatusOr<Plan> plan = Solve(problem, options);
  return plan.ok() ? PlanToJson(*plan, problem) : plan.status().ToString();
}

TEST(Threads, GiveTheSamePlan) {
  int plans = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Problem problem = RandomProblem(seed, 10 + 5 * static_cast<int>(seed),
                                    seed % 3 != 0, seed % 4 != 1);
    if (seed % 5 == 0) AddRandomChoices(seed, problem);
    const absl::StatusOr<Plan> all = KeepEverything(problem);
    ASSERT_TRUE(all.ok());
    for (int percent : {80, 55}) {
      SCOPED_TRACE(absl::StrCat("seed ", seed, " at ", percent, " %"));
      SolveOptions options;
      options.budget_bytes = all->predicted.peak_bytes / 100 * percent;
      options.work_limit = 40'000;
      options.seed = seed;
      options.threads = 1;
      const std::string alone = PlanText(problem, options);
      for (int threads : {2, 8, 0}) {
        options.threads = threads;
        ASSERT_EQ(PlanText(problem, options), alone) << threads << " threads";
      }
      plans += alone.front() == '{';
    }
  }
  EXPECT_GT(plans, 12);
}

// The transformer takes every way of the search: copies, persistent values,
// layouts that fail. Twenty budgets take minutes.
TEST(Threads, SlowSamePlansAndMonotoneAtTwentyBudgets) {
  TransformerShape shape;
  shape.layers = 3;
  for (bool copies : {true, false}) {
    shape.copies = copies;
    const Problem problem = TransformerProblem(shape);
    const absl::StatusOr<Plan> all = KeepEverything(problem);
    ASSERT_TRUE(all.ok());
    int64_t last_ns = 0;
    int plans = 0;
    for (int percent = 100; percent > 0; percent -= 5) {
      SCOPED_TRACE(absl::StrCat(percent, " %, copies ", copies));
      SolveOptions options;
      options.budget_bytes = all->predicted.peak_bytes / 100 * percent;
      options.work_limit = 40'000;
      options.threads = 1;
      const absl::StatusOr<Plan> plan = Solve(problem, options);
      for (int threads : {2, 8}) {
        options.threads = threads;
        ASSERT_EQ(PlanText(problem, options), plan.ok()
                                                  ? PlanToJson(*plan, problem)
                                                  : plan.status().ToString())
            << threads << " threads";
      }
      if (!plan.ok()) continue;
      ++plans;
      EXPECT_GE(plan->predicted.step_ns, last_ns);
      last_ns = plan->predicted.step_ns;
    }
    EXPECT_GT(plans, 5);
  }
}

// While all threads search.
TEST(Threads, StopWhenCancelled) {
  TransformerShape shape;
  shape.layers = 2;
  const Problem problem = TransformerProblem(shape);
  const absl::StatusOr<Plan> all = KeepEverything(problem);
  ASSERT_TRUE(all.ok());
  std::atomic<bool> cancel = false;
  SolveOptions options;
  options.budget_bytes = all->predicted.peak_bytes / 2;
  options.work_limit = int64_t{1} << 40;  // days
  options.bound_work_limit = 0;
  options.threads = 4;
  options.cancel = &cancel;
  std::thread canceller([&] {
    absl::SleepFor(absl::Milliseconds(500));
    cancel = true;
  });
  const absl::StatusOr<Plan> plan = Solve(problem, options);
  canceller.join();
  if (plan.ok()) {
    EXPECT_TRUE(Verify(problem, *plan).ok());
  } else {
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kDeadlineExceeded);
  }
}

TEST(Threads, MayNotBeNegative) {
  SolveOptions options;
  options.threads = -1;
  EXPECT_EQ(Solve(RandomProblem(1, 10, false, false), options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace loadline::planner
