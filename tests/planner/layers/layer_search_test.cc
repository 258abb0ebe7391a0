// Searches of few layers for all: schedules within bytes, and whole plans.
#include "planner/layers/layer_search.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "planner/schedule/simulate.h"
#include "planner/solve/solve.h"
#include "tests/planner/support/layered_problem.h"
#include "tests/planner/support/transformer_problem.h"

namespace loadline::planner {
namespace {

TEST(LayerSearch, FindsSchedulesOfAllLayersWithinTheBytes) {
  const Problem problem = Chain(400);
  const SearchModel model = MakeSearchModel(problem, true, false);
  const auto coarse = FindCoarseLayers(problem, model.index, 250'000);
  ASSERT_NE(coarse, nullptr);
  LayerSearch search(model, *coarse, true, false, {});
  const std::vector<Schedule> starts = {GivenOrder(model)};
  const int64_t peak_bytes = FindLifetimes(model, starts[0]).peak_bytes;
  double last_ns = 0;
  for (int percent : {80, 60, 50}) {
    PointSearchOptions options;
    options.target_bytes = peak_bytes / 100 * percent;
    options.floor_ns = static_cast<double>(model.compute_ns);
    options.work = 100'000;
    const std::vector<FoundSchedule> finds =
        search.SearchAtPoint(starts, options, WorkBudget());
    ASSERT_FALSE(finds.empty()) << percent;
    for (const FoundSchedule& found : finds) {
      const Lifetimes lives = FindLifetimes(model, found.schedule);
      EXPECT_TRUE(lives.valid);
      EXPECT_LE(lives.peak_bytes, options.target_bytes);
      EXPECT_GE(found.step_ns, options.floor_ns);
      EXPECT_EQ(found.step_ns, FindTimes(model, found.schedule).step_ns);
    }
    EXPECT_GT(finds.front().step_ns, last_ns);
    last_ns = finds.front().step_ns;
  }
  EXPECT_LT(last_ns, 1.3 * static_cast<double>(model.compute_ns));
}

absl::StatusOr<Plan> PlanAt(const Problem& problem, int percent, bool offload,
                            int64_t work = 1'000'000) {
  SolveOptions options;
  options.allow_offload = offload;
  options.bound_work_limit = 0;
  options.work_limit = work;
  options.budget_bytes =
      KeepEverything(problem)->predicted.peak_bytes / 100 * percent;
  const absl::StatusOr<Plan> plan = Solve(problem, options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (plan.ok()) {
    EXPECT_LE(plan->arena_bytes, options.budget_bytes);
  }
  return plan;
}

double OverheadOf(const Plan& plan) {
  const int64_t once_ns =
      plan.predicted.compute_ns - plan.predicted.recompute_ns;
  return static_cast<double>(plan.predicted.step_ns) /
             static_cast<double>(once_ns) -
         1;
}

double OverheadAt(const Problem& problem, int percent, bool offload) {
  const absl::StatusOr<Plan> plan = PlanAt(problem, percent, offload);
  return plan.ok() ? OverheadOf(*plan) : 0;
}

TEST(Solve, PlansManyLayersAsWellAsFew) {
  // Both sides of the size from which on a few layers stand for all.
  const double few = OverheadAt(Chain(100), 60, false);
  const double many = OverheadAt(Chain(1000), 60, false);
  EXPECT_GT(few, 0.01);
  EXPECT_LT(many, 1.1 * few);
}

TEST(Solve, SearchesARepeatedBlockOnce) {
  const Problem problem = Chain(400);
  const absl::StatusOr<Plan> plan = PlanAt(problem, 60, false, 250'000);
  ASSERT_TRUE(plan.ok());
  EXPECT_GT(plan->searched.layers, 390);
  EXPECT_LT(plan->searched.searched_layers, 50);
  EXPECT_LT(plan->searched.searched_nodes, 200);
  EXPECT_NE(PlanToJson(*plan, problem).find("searched_layers"),
            std::string::npos);
  // What every layer gets is as good as where all of few were searched.
  const absl::StatusOr<Plan> few = PlanAt(Chain(60), 60, false, 250'000);
  ASSERT_TRUE(few.ok());
  EXPECT_EQ(few->searched.layers, 0);
  EXPECT_EQ(PlanToJson(*few, Chain(60)).find("searched_layers"),
            std::string::npos);
  EXPECT_LT(OverheadOf(*plan), 1.1 * OverheadOf(*few));
}

TEST(Solve, MeetsTightBudgetsWithManyLayers) {
  // Greedy descents on the few layers get stuck at some of these.
  TransformerShape shape;
  shape.layers = 125;
  const Problem problem = TransformerProblem(shape);
  EXPECT_LT(OverheadAt(problem, 40, false), 0.05);
  EXPECT_LT(OverheadAt(problem, 30, false), 0.062);
}

TEST(Solve, SlowMonotoneOverBudgetsWithManyLayers) {
  const Problem problem = SmallTransformer(60);
  ASSERT_GT(problem.nodes.size(), 4000u);
  double last = 1e9;
  for (int percent : {40, 60, 62, 80}) {
    const double overhead = OverheadAt(problem, percent, true);
    EXPECT_LE(overhead, last) << percent;
    last = overhead;
  }
}

}  // namespace
}  // namespace loadline::planner
