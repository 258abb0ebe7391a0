// Flags as the planner's types, and what a GPU reserves.
#include "tools/pipeline/plan_request.h"

#include <gtest/gtest.h>

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/planner/support/random_problem.h"
#include "tools/cli/device_names.h"
#include "tools/cli/exit_code.h"
#include "tools/pipeline/sweep.h"

namespace loadline::tools {
namespace {

TEST(ReadPlanRequest, TurnsFlagsIntoThePlannersTypes) {
  PlanFlags flags;
  EXPECT_FALSE(ReadPlanRequest(flags)->budget.has_value());
  EXPECT_EQ(ReadPlanRequest(flags)->options.effort, planner::Effort::kNormal);
  flags.budget = "60%";
  flags.no_offload = true;
  flags.plan_seed = 7;
  flags.time_limit = "2s";
  flags.threads = 3;
  const auto request = ReadPlanRequest(
      flags, {.effort = planner::Effort::kQuick, .work_limit = 5});
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->budget->kind, planner::Budget::Kind::kShare);
  EXPECT_TRUE(request->options.allow_recompute);
  EXPECT_FALSE(request->options.allow_offload);
  EXPECT_EQ(request->options.seed, 7u);
  EXPECT_EQ(request->options.time_limit, absl::Seconds(2));
  EXPECT_EQ(request->options.threads, 3);
  EXPECT_EQ(request->options.effort, planner::Effort::kQuick);
  EXPECT_EQ(request->options.work_limit, 5);
  flags.budget = "3";
  EXPECT_FALSE(ReadPlanRequest(flags).ok());
}

// Bytes of a user are all of a GPU's; bytes that a sweep takes from a plan are
// that plan's.
TEST(SweepBudgets, TakesWhatAGpuReservesOffNothing) {
  planner::Problem problem = planner::RandomProblem(1, 20, true, true);
  problem.machine->nominal = true;
  PlannedStep step;
  step.problem = problem;
  step.keep_everything = *planner::KeepEverything(problem);
  step.problem.machine->reserved_bytes = 2 * step.keep_everything.budget_bytes;
  StepFlags flags;
  flags.purpose.work_limit = 4'000;
  const auto plans = SweepBudgets(step, flags, 4, nullptr);
  ASSERT_TRUE(plans.ok()) << plans.status();
  EXPECT_EQ(plans->size(), 4u);
  EXPECT_EQ(plans->back().budget_bytes, step.keep_everything.budget_bytes);
  for (size_t i = 1; i < plans->size(); ++i) {
    EXPECT_LE((*plans)[i].predicted.step_ns, (*plans)[i - 1].predicted.step_ns);
  }
  flags.plan.budget = absl::StrCat(step.keep_everything.budget_bytes, "B");
  const auto none =
      SolveFor(step.problem, flags, step.keep_everything, nullptr);
  EXPECT_EQ(ExitCodeFor(none.status()), kCannotFit);
}

// What a stopped search did not find says nothing about the budget.
TEST(SolveFor, IsInterruptedWhereASearchWasStopped) {
  const planner::Problem problem = planner::RandomProblem(1, 60, true, true);
  const auto whole = planner::KeepEverything(problem);
  ASSERT_TRUE(whole.ok()) << whole.status();
  StepFlags flags;
  flags.plan.budget = absl::StrCat(whole->predicted.peak_bytes / 50 + 1, "B");
  ASSERT_EQ(ExitCodeFor(SolveFor(problem, flags, *whole, nullptr).status()),
            kCannotFit);
  const std::atomic<bool> stopped = true;
  EXPECT_EQ(ExitCodeFor(SolveFor(problem, flags, *whole, &stopped).status()),
            kInterrupted);
}

}  // namespace
}  // namespace loadline::tools
