// The branch and bound of one window: its goal, its limit, and that the state
// is left as it was. What it finds is compared with every sequence of steps in
// window_test.cc.
#include "planner/search/window_search.h"

#include <cmath>
#include <cstdint>
#include <optional>

#include "gtest/gtest.h"
#include "planner/schedule/simulate.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

constexpr int64_t kPlentyOfWork = 2'000'000;

TEST(SearchWindow, MeetsItsGoalAndLeavesTheStateAsItWas) {
  int found = 0, floored = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Problem problem = RandomProblem(seed, 8 + static_cast<int>(seed % 8),
                                    seed % 4 == 0, seed % 2 == 0);
    if (problem.machine) problem.machine->d2h_h2d_factor = 1;
    const SearchModel model = MakeSearchModel(problem);
    const Schedule start = GivenOrder(model);
    const int64_t target = FindLifetimes(model, start).peak_bytes * 8 / 10;
    SearchState state(model, start, target);
    WindowGoal goal = {.most_steps = 4, .best_ns = 1e15};
    WorkBudget effort{.left = kPlentyOfWork};
    std::optional<Schedule> best;
    const bool finished = SearchWindow(state, goal, effort, &best);
    EXPECT_EQ(state.ToSchedule().items, start.items);
    EXPECT_EQ(state.ToSchedule().host_home, start.host_home);
    if (!finished || !best) continue;
    ++found;
    const Lifetimes lives = FindLifetimes(model, *best);
    ASSERT_TRUE(lives.valid);
    EXPECT_LE(lives.peak_bytes, target);
    const double best_ns = FindTimes(model, *best).step_ns;
    // Nothing beats the best, so with it as the goal nothing is found.
    goal.best_ns = best_ns;
    WorkBudget again{.left = kPlentyOfWork};
    EXPECT_TRUE(SearchWindow(state, goal, again, &best));
    EXPECT_FALSE(best.has_value());
    // Below a floor it takes the fastest that is not faster.
    goal = {
        .most_steps = 4, .best_ns = 1e15, .floor_ns = std::round(best_ns) + 1};
    WorkBudget above{.left = kPlentyOfWork};
    if (SearchWindow(state, goal, above, &best) && best) {
      EXPECT_GE(std::round(FindTimes(model, *best).step_ns), goal.floor_ns);
      ++floored;
    }
  }
  EXPECT_GT(found, 8);
  EXPECT_GT(floored, 3);
}

TEST(SearchWindow, SaysWhenALimitEndedIt) {
  const Problem problem = RandomProblem(7, 60, true, true);
  const SearchModel model = MakeSearchModel(problem);
  const Schedule start = GivenOrder(model);
  SearchState state(model, start,
                    FindLifetimes(model, start).peak_bytes * 6 / 10);
  ASSERT_GT(state.excess_area(), 0);
  WorkBudget little{.left = 3};
  std::optional<Schedule> best;
  EXPECT_FALSE(
      SearchWindow(state, {.most_steps = 6, .best_ns = 1e15}, little, &best));
  EXPECT_EQ(state.ToSchedule().items, start.items);
}

}  // namespace
}  // namespace loadline::planner
