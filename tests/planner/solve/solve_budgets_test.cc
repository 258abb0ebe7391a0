// Which budgets are met, and that larger ones are never slower.
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "planner/bound/bound.h"
#include "planner/layout/laid_out_schedule.h"
#include "planner/schedule/simulate.h"
#include "planner/search/eviction_start.h"
#include "planner/search/search.h"
#include "planner/solve/smallest_start.h"
#include "planner/solve/solve.h"
#include "planner/verify/verify.h"
#include "tests/planner/support/random_problem.h"
#include "tests/planner/support/solve_samples.h"
#include "tests/planner/support/transformer_problem.h"

namespace loadline::planner {
namespace {

TEST(Solve, RetriesChangeNoPlanThatTheFirstSearchFinds) {
  int met = 0, missed = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Problem problem = SeededProblem(seed);
    const absl::StatusOr<Plan> all = KeepEverything(problem);
    ASSERT_TRUE(all.ok()) << seed << ": " << all.status();
    for (int percent : {120, 105, 102, 100}) {
      SolveOptions options;
      options.budget_bytes = all->bounds.peak_bytes * percent / 100;
      options.work_limit = kWork / 4;
      options.bound_work_limit = 0;
      const absl::StatusOr<Plan> plan = Solve(problem, options);
      options.allow_retries = false;
      const absl::StatusOr<Plan> first = Solve(problem, options);
      SCOPED_TRACE(absl::StrCat("seed ", seed, " at ", percent, " %"));
      if (first.ok()) {
        ++met;
        ASSERT_TRUE(plan.ok()) << plan.status();
        EXPECT_EQ(PlanToJson(*plan, problem), PlanToJson(*first, problem));
        continue;
      }
      ++missed;
      const auto facts = InfeasibilityOf(first.status());
      ASSERT_TRUE(facts.has_value()) << first.status();
      if (plan.ok()) continue;
      EXPECT_LE(InfeasibilityOf(plan.status())->smallest_met_bytes,
                facts->smallest_met_bytes);
    }
  }
  EXPECT_GT(met, 0);
  EXPECT_GT(missed, 0);
}

TEST(Solve, LargerBudgetsAreNeverSlower) {
  int met = 0;
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    const Problem problem = SeededProblem(seed);
    const absl::StatusOr<Plan> all = KeepEverything(problem);
    ASSERT_TRUE(all.ok());
    int64_t last_step_ns = INT64_MAX;
    int64_t smaller = 0;
    for (int twentieth = 4; twentieth <= 23; ++twentieth) {
      SolveOptions options;
      options.budget_bytes = Percent(*all, 5 * twentieth);
      options.work_limit = kWork;
      options.bound_work_limit = 0;
      const absl::StatusOr<Plan> plan = Solve(problem, options);
      if (!plan.ok()) {
        EXPECT_EQ(last_step_ns, INT64_MAX)
            << "seed " << seed << ": met " << smaller << " but not "
            << options.budget_bytes;
        continue;
      }
      EXPECT_LE(plan->predicted.step_ns, last_step_ns)
          << "seed " << seed << " at " << 5 * twentieth << " %";
      last_step_ns = plan->predicted.step_ns;
      smaller = options.budget_bytes;
      ++met;
    }
  }
  // At least where everything can be kept.
  EXPECT_GE(met, 25 * 4);
}

// Whether the eviction pass over some order gives a plan within the budget.
bool EvictionFits(const SearchModel& model, int64_t budget_bytes) {
  for (const Schedule& order : SeedOrders(model)) {
    const std::optional<Schedule> start =
        EvictionStart(model, order, {.target_bytes = budget_bytes, .seed = 0});
    if (!start) continue;
    const auto laid_out =
        LayOutTightest(model, *start, FindTimes(model, *start).step_ns, 1000);
    if (laid_out.ok() && laid_out->arena_bytes <= budget_bytes) return true;
  }
  return false;
}

TEST(Solve, LittleWorkFindsAPlanWhereEvictionDoes) {
  int fits = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const Problem problem =
        seed == 1 ? TransformerProblem({.layers = 2})
                  : RandomProblem(seed, 20 + static_cast<int>(seed % 60),
                                  seed % 3 != 0, seed % 4 != 1);
    const absl::StatusOr<Plan> all = KeepEverything(problem);
    ASSERT_TRUE(all.ok());
    const SearchModel model = MakeSearchModel(problem);
    for (int percent : {90, 80, 70, 60, 50, 35}) {
      SolveOptions options;
      options.budget_bytes = Percent(*all, percent);
      options.bound_work_limit = 0;
      if (!EvictionFits(model, options.budget_bytes)) continue;
      ++fits;
      for (int64_t work : {200, 2000}) {
        options.work_limit = work;
        const absl::StatusOr<Plan> plan = Solve(problem, options);
        EXPECT_TRUE(plan.ok()) << seed << " at " << percent << " %, " << work
                               << " units of work: " << plan.status();
      }
    }
  }
  EXPECT_GT(fits, 100);
}

// Nothing needs a search there.
TEST(Solve, AnyWorkFindsAPlanWhereTheSmallestStartIsOne) {
  int starts = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Problem problem = RandomProblem(seed, 40, true, true);
    const SearchModel model = MakeSearchModel(problem);
    const auto start =
        SmallestStart(model, SeedOrders(model), BoundPeak(model).bytes, 0, {});
    if (!start) continue;
    ++starts;
    SolveOptions options;
    options.work_limit = 0;
    options.bound_work_limit = 0;
    options.budget_bytes = start->arena_bytes;
    const absl::StatusOr<Plan> plan = Solve(problem, options);
    EXPECT_TRUE(plan.ok()) << seed << ": " << plan.status();
  }
  EXPECT_GE(starts, 20);
}

TEST(SolveSmallest, IsNoSlowerThanSolveWithinItsBudgetInSmallProblems) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const Problem problem = SeededProblem(seed);
    SolveOptions options;
    options.work_limit = kWork / 2;
    options.bound_work_limit = 0;
    const absl::StatusOr<Plan> smallest = SolveSmallest(problem, options);
    ASSERT_TRUE(smallest.ok()) << seed << ": " << smallest.status();
    options.budget_bytes = smallest->budget_bytes;
    const absl::StatusOr<Plan> asked = Solve(problem, options);
    ASSERT_TRUE(asked.ok()) << seed << ": " << asked.status();
    EXPECT_LE(smallest->predicted.step_ns, asked->predicted.step_ns) << seed;
  }
}

TEST(Solve, SmallestBudgetIsMetAndReportedWhenLessIsAsked) {
  int refused = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Problem problem = SeededProblem(seed);
    SolveOptions options;
    options.work_limit = kWork;
    options.bound_work_limit = 0;
    const absl::StatusOr<Plan> smallest = SolveSmallest(problem, options);
    ASSERT_TRUE(smallest.ok()) << seed << ": " << smallest.status();
    EXPECT_TRUE(Verify(problem, *smallest).ok());
    options.budget_bytes = smallest->budget_bytes;
    const absl::StatusOr<Plan> met = Solve(problem, options);
    EXPECT_TRUE(met.ok()) << seed << ": " << met.status();
    options.budget_bytes = 0;
    const absl::StatusOr<Plan> none = Solve(problem, options);
    if (none.ok()) continue;  // a problem of no bytes
    ++refused;
    EXPECT_EQ(none.status().code(), absl::StatusCode::kResourceExhausted);
    const auto facts = InfeasibilityOf(none.status());
    ASSERT_TRUE(facts.has_value());
    EXPECT_FALSE(facts->tightest_values.empty());
    EXPECT_GE(facts->smallest_met_bytes, facts->proven_bound_bytes);
  }
  EXPECT_GE(refused, 35);
}

}  // namespace
}  // namespace loadline::planner
