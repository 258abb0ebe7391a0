// Planning GPTs: a step of some size, spare bytes, and budgets below the bytes
// of weights and optimizer state.
#include <cstdint>

#include "gtest/gtest.h"
#include "planner/solve/solve.h"
#include "planner/verify/verify.h"
#include "tests/planner/support/random_problem.h"
#include "tests/planner/support/transformer_problem.h"

namespace loadline::planner {
namespace {

constexpr int64_t kTransformerWork = 2'000'000;  // a fifth of the default

TransformerShape ShortSteps(int layers, int64_t vocabulary) {
  TransformerShape shape;
  shape.layers = layers;
  shape.tokens = 1024;
  shape.sequence = 256;
  shape.vocabulary = vocabulary;
  return shape;
}

TEST(Solve, PlansTwelveLayersWithinTheBudget) {
  const Problem problem = TransformerProblem({});
  ASSERT_GT(problem.nodes.size(), 900u);
  const absl::StatusOr<Plan> all = KeepEverything(problem);
  ASSERT_TRUE(all.ok()) << all.status();
  for (int percent : {75, 50}) {
    SolveOptions options;
    options.budget_bytes = all->predicted.peak_bytes / 100 * percent;
    options.work_limit = kTransformerWork;
    options.bound_work_limit = 0;
    const absl::StatusOr<Plan> plan = Solve(problem, options);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_LE(plan->arena_bytes, options.budget_bytes);
  }
}

// No layer is like another, so none stands for the others in the search, and
// each is worth running again only as a whole.
TEST(Solve, FindsWhatToKeepOfManyUnlikeLayers) {
  TransformerShape shape;
  shape.layers = 60;
  shape.copies = false;
  Problem problem = TransformerProblem(shape);
  TestRandom random(1);
  for (Node& node : problem.nodes) {
    node.time_ns += node.time_ns * random.In(0, 100) / 1000;
  }
  const absl::StatusOr<Plan> all = KeepEverything(problem);
  ASSERT_TRUE(all.ok()) << all.status();
  SolveOptions options;
  options.budget_bytes = all->predicted.peak_bytes / 100 * 40;
  options.work_limit = kTransformerWork;
  const absl::StatusOr<Plan> plan = Solve(problem, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_LE(static_cast<double>(plan->predicted.step_ns),
            1.005 * static_cast<double>(plan->bounds.step_ns));
}

// The live bytes of the first fast schedules fit the budget, but no layout of
// theirs does. The plan must not copy nearly everything instead, which is seven
// times as slow.
TEST(Solve, SearchesWithFewerBytesUntilALayoutFits) {
  TransformerShape shape = ShortSteps(2, 2048);
  shape.flop_per_s = 2e13;
  shape.memory_bytes_per_s = 2e12;
  Problem problem = TransformerProblem(shape);
  const absl::StatusOr<Plan> all = KeepEverything(problem);
  ASSERT_TRUE(all.ok()) << all.status();
  SolveOptions options;
  options.budget_bytes = all->predicted.peak_bytes / 100 * 40;
  options.work_limit = 300'000;
  options.bound_work_limit = 0;
  problem.addresses = false;
  const absl::StatusOr<Plan> without = Solve(problem, options);
  ASSERT_TRUE(without.ok()) << without.status();
  problem.addresses = true;
  for (uint64_t seed : {0, 1, 2}) {
    options.seed = seed;
    const absl::StatusOr<Plan> plan = Solve(problem, options);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_LE(plan->arena_bytes, options.budget_bytes);
    EXPECT_LE(static_cast<double>(plan->predicted.step_ns),
              1.5 * static_cast<double>(without->predicted.step_ns))
        << "seed " << seed;
  }
}

TEST(Solve, CopiesNothingThatSpareBytesCanKeep) {
  const TransformerShape shape = ShortSteps(4, 1024);
  const Problem problem = TransformerProblem(shape);
  const absl::StatusOr<Plan> all = KeepEverything(problem);
  ASSERT_TRUE(all.ok()) << all.status();
  const auto copied_bytes = [&](int percent) -> int64_t {
    SolveOptions options;
    options.budget_bytes = all->predicted.peak_bytes / 100 * percent;
    options.work_limit = kTransformerWork;
    options.bound_work_limit = 0;
    const absl::StatusOr<Plan> plan = Solve(problem, options);
    EXPECT_TRUE(plan.ok()) << plan.status();
    if (!plan.ok()) return 0;
    // Only then do both hide their copies, and the comparison means something.
    EXPECT_EQ(plan->predicted.step_ns, all->predicted.step_ns) << percent;
    return plan->predicted.d2h_bytes + plan->predicted.h2d_bytes;
  };
  EXPECT_LT(copied_bytes(97), copied_bytes(90));
  EXPECT_LT(copied_bytes(90), copied_bytes(80));
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
  options.work_limit = kTransformerWork / 4;
  options.bound_work_limit = 0;
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
