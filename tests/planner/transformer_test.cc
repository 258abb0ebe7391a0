// Planning a 12-layer GPT: fast enough, and down to budgets below the bytes
// of its weights and optimizer state.
#include <cstdint>
#include <ctime>

#include "gtest/gtest.h"
#include "planner/solve.h"
#include "planner/verify.h"
#include "tests/planner/transformer_problem.h"

namespace loadline::planner {
namespace {

TEST(Solve, PlansTwelveLayersInSecondsOfProcessorTime) {
  const Problem problem = TransformerProblem({});
  ASSERT_GT(problem.nodes.size(), 900u);
  const absl::StatusOr<Plan> all = KeepEverything(problem);
  ASSERT_TRUE(all.ok()) << all.status();
  for (int percent : {75, 50}) {
    SolveOptions options;
    options.budget_bytes = all->predicted.peak_bytes / 100 * percent;
    const std::clock_t start = std::clock();
    const absl::StatusOr<Plan> plan = Solve(problem, options);
    const double seconds =
        static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_LE(plan->arena_bytes, options.budget_bytes);
    EXPECT_LT(seconds, 15);  // 1 to 3 on an idle core, sanitizers aside
  }
}

TEST(Solve, OptimizerStateThatDoesNotFitLivesOnTheHost) {
  TransformerShape shape;
  shape.layers = 3;
  shape.tokens = 256;
  shape.sequence = 64;
  shape.vocabulary = 1024;
  const Problem problem = TransformerProblem(shape);
  int64_t state_bytes = 0;
  for (const Value& value : problem.values) {
    if (value.persistent) state_bytes += value.bytes;
  }
  state_bytes /= 2;  // each appears before and after its update
  SolveOptions options;
  const absl::StatusOr<Plan> smallest = SolveSmallest(problem, options);
  ASSERT_TRUE(smallest.ok()) << smallest.status();
  EXPECT_LT(smallest->arena_bytes, state_bytes / 2);
  options.allow_offload = false;
  const absl::StatusOr<Plan> without = SolveSmallest(problem, options);
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_GE(without->arena_bytes, state_bytes);
}

}  // namespace
}  // namespace loadline::planner
