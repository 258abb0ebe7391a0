// The greedy descent: what it picks, what it may use, and that it stays above
// the exact optimum of tiny problems.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"
#include "planner/schedule/simulate.h"
#include "planner/search/search.h"
#include "tests/planner/support/oracle.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

constexpr int64_t kPlenty = int64_t{1} << 40;

// A (5000 ns to make) and B (100 ns), 1000 bytes each, are idle while nodes 2
// and 3 need 2010 bytes; node 4 reads both.
Problem CheapAndExpensive() {
  Problem problem;
  problem.addresses = false;
  const int64_t bytes[] = {1, 1000, 1000, 2000, 10, 1};
  for (int v = 0; v < 6; ++v) {
    problem.values.push_back({.file_id = v, .bytes = bytes[v]});
  }
  const ValueId x{0}, a{1}, b{2}, c{3}, d{4}, e{5};
  problem.nodes = {
      {.file_id = 0, .time_ns = 5000, .inputs = {x}, .outputs = {a}},
      {.file_id = 1, .time_ns = 100, .inputs = {x}, .outputs = {b}},
      {.file_id = 2, .time_ns = 300, .inputs = {x}, .outputs = {c}},
      {.file_id = 3, .time_ns = 300, .inputs = {c}, .outputs = {d}},
      {.file_id = 4, .time_ns = 300, .inputs = {a, b, d}, .outputs = {e}}};
  problem.outputs = {e};
  return problem;
}

TEST(LowerPeak, RerunsTheValueThatIsCheaperToMake) {
  const Problem problem = CheapAndExpensive();
  const SearchModel model = MakeSearchModel(problem);
  SearchState state(model, GivenOrder(model), 3100);
  ASSERT_GT(state.excess_area(), 0);
  WorkBudget effort{.left = kPlenty};
  ASSERT_TRUE(LowerPeak(state, {}, effort));
  EXPECT_TRUE(state.valid());
  EXPECT_EQ(state.Makespan(), 6000 + 100);
  EXPECT_LE(state.PeakBytes(), 3100);
}

TEST(LowerPeak, FailsWhereNothingHelpsOrNoWorkIsLeft) {
  const Problem problem = CheapAndExpensive();
  const SearchModel model = MakeSearchModel(problem);
  SearchState state(model, GivenOrder(model), 1000);
  WorkBudget effort{.left = kPlenty};
  EXPECT_FALSE(LowerPeak(state, {}, effort));
  EXPECT_TRUE(state.valid());
  SearchState untouched(model, GivenOrder(model), 3100);
  WorkBudget none;
  EXPECT_FALSE(LowerPeak(untouched, {}, none));
  EXPECT_EQ(untouched.ToSchedule().items, GivenOrder(model).items);
}

TEST(LowerPeak, UsesOnlyWhatItMayAndEndsWithinTheTarget) {
  int met = 0;
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    SCOPED_TRACE(seed);
    Problem problem = RandomProblem(seed, 25, seed % 2 == 0, true);
    if (seed % 4 == 0) AddRandomChoices(seed, problem);
    const SearchModel model = MakeSearchModel(problem);
    const Schedule start = GivenOrder(model);
    const int64_t target = FindLifetimes(model, start).peak_bytes * 7 / 10;
    const GreedyOptions options = {.lane_price = 0.05,
                                   .allow_rerun = seed % 3 != 0,
                                   .allow_copy = seed % 3 != 1};
    SearchState state(model, start, target);
    WorkBudget effort{.left = kPlenty};
    const bool lowered = LowerPeak(state, options, effort);
    EXPECT_EQ(lowered, state.excess_area() <= 0);
    const Schedule found = state.ToSchedule();
    const Lifetimes lives = FindLifetimes(model, found);
    ASSERT_TRUE(lives.valid);
    if (lowered) {
      EXPECT_LE(lives.peak_bytes, target);
    }
    met += lowered;
    const auto copies = std::count_if(
        found.items.begin(), found.items.end(),
        [](const Item& item) { return item.kind != ItemKind::kRun; });
    if (!options.allow_copy) {
      EXPECT_EQ(copies, 0);
    }
    if (!options.allow_rerun && !options.allow_copy) {
      EXPECT_EQ(found.items.size(), start.items.size());
    }
    // The same again.
    SearchState other(model, start, target);
    WorkBudget more{.left = kPlenty};
    LowerPeak(other, options, more);
    EXPECT_EQ(other.ToSchedule().items, found.items);
    EXPECT_EQ(more.left, effort.left);
  }
  EXPECT_GT(met, 40);
}

TEST(LowerPeak, IsNoFasterThanTheOptimumOfTinyProblems) {
  int checked = 0, optimal = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Problem problem = RandomProblem(seed, 8, false, false);
    problem.addresses = false;
    const SearchModel model = MakeSearchModel(problem);
    const Schedule start = GivenOrder(model);
    const int64_t target = FindLifetimes(model, start).peak_bytes * 9 / 10;
    SearchState state(model, start, target);
    WorkBudget effort{.left = kPlenty};
    if (!LowerPeak(state, {}, effort)) continue;
    const Oracle oracle = FindLeastStep(problem, target, 200'000);
    if (oracle.gave_up) continue;
    ASSERT_TRUE(oracle.step_ns.has_value()) << seed;
    EXPECT_GE(state.Makespan(), *oracle.step_ns - 1e-6) << seed;
    ++checked;
    optimal += state.Makespan() <= *oracle.step_ns + 1e-6;
  }
  EXPECT_GT(checked, 15);
  EXPECT_GT(2 * optimal, checked);
}

}  // namespace
}  // namespace loadline::planner
