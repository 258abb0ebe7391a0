// Estimates must hold for the plans that a search then finds.
#include "tools/report/estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "executor/cpu/device.h"
#include "nlohmann/json.hpp"
#include "tests/planner/support/random_problem.h"
#include "tests/tools/support/model_flags.h"
#include "tools/cli/exit_code.h"
#include "tools/pipeline/device.h"
#include "tools/pipeline/plan_request.h"

namespace loadline::tools {
namespace {

using testing::HasSubstr;

PlannedStep StepOf(planner::Problem problem) {
  PlannedStep step;
  step.problem = std::move(problem);
  auto keep = planner::KeepEverything(step.problem);
  EXPECT_TRUE(keep.ok()) << keep.status();
  step.keep_everything = *std::move(keep);
  return step;
}

Estimate Of(const PlannedStep& step, const std::string& budget = "") {
  PlanFlags flags;
  flags.budget = budget;
  auto estimate = EstimateStep(step, flags);
  EXPECT_TRUE(estimate.ok()) << estimate.status();
  return estimate.ok() ? *std::move(estimate) : Estimate{};
}

std::string Bytes(int64_t bytes) { return absl::StrCat(bytes, "B"); }

TEST(EstimateStep, HoldsForThePlansThatAreFound) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const PlannedStep step = StepOf(planner::RandomProblem(
        seed, 6 + static_cast<int>(seed % 30), seed % 3 != 0, seed % 4 != 1));
    SCOPED_TRACE(seed);
    const Estimate estimate = Of(step);
    EXPECT_EQ(FitOf(estimate), Fit::kNoBudget);
    EXPECT_LE(estimate.low.bytes, estimate.expected_bytes);
    EXPECT_LE(estimate.expected_bytes, estimate.high_bytes);
    int64_t at_peak = 0;
    for (const MemoryComponent& component : estimate.components) {
      EXPECT_LE(component.peak_bytes, component.total_bytes);
      at_peak += component.peak_bytes;
    }
    EXPECT_EQ(at_peak, estimate.expected_bytes);

    planner::SolveOptions options;
    options.work_limit = 4'000;
    options.budget_bytes = estimate.high_bytes;
    EXPECT_EQ(FitOf(Of(step, Bytes(estimate.high_bytes))), Fit::kAsIs);
    const auto plan = planner::Solve(step.problem, options);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->predicted.step_ns, step.keep_everything.predicted.step_ns);

    if (estimate.low.bytes < 2) continue;
    options.budget_bytes = estimate.low.bytes - 1;
    EXPECT_EQ(FitOf(Of(step, Bytes(estimate.low.bytes - 1))), Fit::kNever);
    EXPECT_FALSE(planner::Solve(step.problem, options).ok());
    EXPECT_NE(FitOf(Of(step, Bytes(estimate.low.bytes))), Fit::kNever);
  }
}

TEST(EstimateStep, ListsEveryComponentOfATrainingStep) {
  executor::CpuDevice device;
  const StepFlags flags = MlpFlags();
  const auto step = PoseTrainingStep(flags, device, nullptr);
  ASSERT_TRUE(step.ok()) << step.status();
  std::map<std::string, int64_t> totals;
  const Estimate estimate = Of(*step);
  for (const MemoryComponent& component : estimate.components) {
    totals[component.name] = component.total_bytes;
  }
  EXPECT_EQ(totals["parameters"], 4 * 26'122 + 4);  // plus the constant 1
  EXPECT_EQ(totals["optimizer"], 2 * 4 * 26'122);   // AdamW has two of each
  EXPECT_EQ(totals["data"], 32 * 64 * 4 + 32 * 8);
  EXPECT_GE(totals["gradients"], 4 * 26'122);
  EXPECT_GT(totals["activations"], 0);
}

TEST(EstimateStep, FlagsThatForbidRaiseTheBound) {
  executor::CpuDevice device;
  const auto step = PoseTrainingStep(MlpFlags(), device, nullptr);
  ASSERT_TRUE(step.ok()) << step.status();
  PlanFlags flags;
  flags.no_offload = true;
  const auto without = EstimateStep(*step, flags);
  ASSERT_TRUE(without.ok());
  EXPECT_GT(without->low.bytes, Of(*step).low.bytes);
}

// On a GPU a budget in bytes includes memory that no plan uses.
TEST(EstimateStep, TakesWhatAGpuReservesOffABudgetInBytes) {
  planner::Problem problem = planner::RandomProblem(1, 20, true, true);
  constexpr int64_t kReserved = 1 << 20;
  problem.machine->reserved_bytes = kReserved;
  const PlannedStep step = StepOf(std::move(problem));
  const int64_t bytes = kReserved + Of(step).high_bytes;
  PlanFlags flags;
  for (const char* device : {kCpu, kCuda}) {
    const int64_t off = device == kCuda ? kReserved : 0;
    flags.device = device;
    flags.budget = Bytes(bytes);
    const auto estimate = EstimateStep(step, flags);
    ASSERT_TRUE(estimate.ok()) << estimate.status();
    EXPECT_EQ(estimate->budget_bytes, bytes - off);
    EXPECT_EQ(estimate->outside_counts, off > 0);
    const auto plan = SolveFor(step.problem, *ReadPlanRequest(flags),
                               step.keep_everything, nullptr);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->budget_bytes, bytes - off);
    flags.budget = "100%";
    EXPECT_EQ(EstimateStep(step, flags)->budget_bytes, Of(step).expected_bytes);
  }
  flags.budget = Bytes(kReserved);
  const absl::Status none = SolveFor(step.problem, *ReadPlanRequest(flags),
                                     step.keep_everything, nullptr)
                                .status();
  EXPECT_EQ(ExitCodeFor(none), kCannotFit);
  EXPECT_THAT(std::string(none.message()),
              HasSubstr("1.00 MiB are taken before"));
}

TEST(EstimateStep, RefusesABudgetThatTakesASearch) {
  PlanFlags flags;
  flags.budget = "smallest";
  const auto estimate =
      EstimateStep(StepOf(planner::RandomProblem(1, 6, true, true)), flags);
  EXPECT_THAT(std::string(estimate.status().message()), HasSubstr("search"));
}

TEST(EstimateVerdict, SaysWhatIsMissingAndWhere) {
  const PlannedStep step = StepOf(planner::RandomProblem(1, 20, true, true));
  const Estimate none = Of(step);
  EXPECT_THAT(EstimateVerdict(step, Of(step, "1B")),
              HasSubstr("Proven not to fit in 1 B: "));
  EXPECT_THAT(EstimateVerdict(step, Of(step, Bytes(none.high_bytes))),
              HasSubstr("Fits as it is in "));
  EXPECT_THAT(EstimateVerdict(step, Of(step, Bytes(none.low.bytes))),
              HasSubstr("May fit in "));
  EXPECT_EQ(EstimateJson(step, Of(step, "1B"))["fits"], "never");
  EXPECT_FALSE(EstimateJson(step, none).contains("budget_bytes"));
}

}  // namespace
}  // namespace loadline::tools
