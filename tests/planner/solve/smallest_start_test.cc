// The start that needs no search: a plan near the bound, which plans within a
// time limit never need more bytes than.
#include "planner/solve/smallest_start.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "planner/bound/bound.h"
#include "planner/search/search.h"
#include "planner/solve/solve.h"
#include "planner/verify/verify.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

std::optional<LaidOutSchedule> StartOf(const Problem& problem) {
  const SearchModel model = MakeSearchModel(problem);
  return SmallestStart(model, SeedOrders(model), BoundPeak(model).bytes, 0, {});
}

TEST(SmallestStart, IsAPlanNearTheBound) {
  int near_bound = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const Problem problem = RandomProblem(seed, 60, true, true);
    const std::optional<LaidOutSchedule> start = StartOf(problem);
    ASSERT_TRUE(start) << seed;
    const auto replayed = Replay(problem, start->plan);
    ASSERT_TRUE(replayed.ok()) << replayed.status();
    EXPECT_LE(replayed->peak_bytes, start->arena_bytes);
    const int64_t bound_bytes = BoundPeak(MakeSearchModel(problem)).bytes;
    EXPECT_GE(start->arena_bytes, bound_bytes);
    if (start->arena_bytes <= bound_bytes + bound_bytes / 2) ++near_bound;
  }
  EXPECT_GE(near_bound, 6);
}

TEST(SmallestStart, IsNoneWhereNothingMayMove) {
  const Problem problem = RandomProblem(1, 60, true, true);
  const SearchModel model =
      MakeSearchModel(problem, false, false, Permissions::None());
  EXPECT_FALSE(SmallestStart(model, SeedOrders(model), 1, 0, {}));
}

// Weights that cannot leave are most of the bytes, so no moment can be far
// below the target.
TEST(SmallestStart, IsNearTheBoundWhereMostOfItCannotMove) {
  constexpr int kForward = 800;
  Problem problem;
  const auto add_value = [&](int64_t bytes, bool persistent) {
    const auto id = std::ssize(problem.values);
    problem.values.push_back({.file_id = id,
                              .bytes = bytes,
                              .persistent = persistent,
                              .offload = !persistent});
    return ValueId{static_cast<int>(id)};
  };
  const auto add_node = [&](std::vector<ValueId> inputs) {
    problem.nodes.push_back({.file_id = std::ssize(problem.nodes),
                             .time_ns = 10,
                             .inputs = std::move(inputs),
                             .outputs = {add_value(1024, false)}});
    return problem.nodes.back().outputs[0];
  };
  const ValueId weights = add_value(500 << 10, true);
  std::vector<ValueId> made = {add_value(1024, false)};
  for (int n = 0; n < kForward; ++n) {
    made.push_back(add_node({made.back(), weights}));
  }
  ValueId gradient = made.back();
  for (int n = kForward - 1; n >= 0; --n) {
    gradient = add_node({gradient, made[n], weights});
  }
  problem.outputs = {gradient};
  ASSERT_TRUE(ValidateProblem(problem).ok());
  const std::optional<LaidOutSchedule> start = StartOf(problem);
  ASSERT_TRUE(start);
  const int64_t bound_bytes = BoundPeak(MakeSearchModel(problem)).bytes;
  EXPECT_LE(start->arena_bytes, bound_bytes + bound_bytes / 20);
}

TEST(SolveSmallest, TakesNoMoreBytesThanTheStartWithinATimeLimit) {
  const Problem problem = RandomProblem(3, 400, true, true);
  const std::optional<LaidOutSchedule> start = StartOf(problem);
  ASSERT_TRUE(start);
  SolveOptions options;
  options.time_limit = absl::Seconds(2);
  const auto smallest = SolveSmallest(problem, options);
  ASSERT_TRUE(smallest.ok()) << smallest.status();
  EXPECT_LE(smallest->arena_bytes, start->arena_bytes);
  options.budget_bytes = start->arena_bytes;
  EXPECT_TRUE(Solve(problem, options).ok());
}

}  // namespace
}  // namespace loadline::planner
