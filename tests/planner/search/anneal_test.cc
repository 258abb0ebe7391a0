// Simulated annealing against the exact optimum of tiny problems, and its
// limits.
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "gtest/gtest.h"
#include "planner/schedule/simulate.h"
#include "planner/search/search.h"
#include "tests/planner/support/oracle.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

constexpr int64_t kPlenty = int64_t{1} << 40;

struct Found {
  std::optional<Schedule> schedule;
  double step_ns = std::numeric_limits<double>::infinity();
  int64_t work = 0;
};

Found AnnealAt(const SearchModel& model, int64_t target_bytes,
               const AnnealOptions& options) {
  SearchState state(model, GivenOrder(model), target_bytes);
  WorkBudget effort{.left = kPlenty};
  Found found;
  Anneal(state, options, effort, &found.schedule, &found.step_ns);
  found.work = kPlenty - effort.left;
  return found;
}

int64_t PeakOf(const SearchModel& model) {
  return FindLifetimes(model, GivenOrder(model)).peak_bytes;
}

TEST(Anneal, FindsTheOptimumOfMostTinyProblems) {
  int checked = 0, optimal = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Problem problem = RandomProblem(seed, 7, false, false);
    problem.addresses = false;
    const SearchModel model = MakeSearchModel(problem);
    const int64_t target_bytes = PeakOf(model) * 8 / 10;
    const Oracle oracle = FindLeastStep(problem, target_bytes, 200'000);
    if (oracle.gave_up || !oracle.step_ns) continue;
    const Found found =
        AnnealAt(model, target_bytes, {.moves = 30'000, .seed = seed});
    ++checked;
    if (!found.schedule) continue;
    EXPECT_GE(found.step_ns, *oracle.step_ns - 1e-6) << seed;
    optimal += found.step_ns <= *oracle.step_ns + 1e-6;
  }
  EXPECT_GT(checked, 20);
  EXPECT_GE(optimal * 10, checked * 8) << optimal << " of " << checked;
}

TEST(Anneal, ReportsValidSchedulesWithinTheTargetAndTheFloor) {
  int found_any = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Problem problem = RandomProblem(seed, 30, seed % 2 == 0, seed % 3 != 0);
    if (seed % 4 == 0) AddRandomChoices(seed, problem);
    const SearchModel model = MakeSearchModel(problem);
    const int64_t target_bytes = PeakOf(model) * 7 / 10;
    AnnealOptions options = {.moves = 20'000, .seed = seed};
    const Found found = AnnealAt(model, target_bytes, options);
    if (!found.schedule) continue;
    ++found_any;
    const Lifetimes lives = FindLifetimes(model, *found.schedule);
    ASSERT_TRUE(lives.valid);
    EXPECT_LE(lives.peak_bytes, target_bytes);
    EXPECT_NEAR(FindTimes(model, *found.schedule).step_ns, found.step_ns, 1);
    // The same seed gives the same schedule for the same work.
    const Found again = AnnealAt(model, target_bytes, options);
    EXPECT_EQ(again.schedule->items, found.schedule->items);
    EXPECT_EQ(again.work, found.work);
    // Nothing faster than a floor is reported, and it stops at what is enough.
    options.floor_ns = found.step_ns + 1;
    const Found floored = AnnealAt(model, target_bytes, options);
    if (floored.schedule) {
      EXPECT_GE(floored.step_ns, options.floor_ns);
    }
    options.floor_ns = 0;
    options.enough_ns = found.step_ns;
    const Found enough = AnnealAt(model, target_bytes, options);
    EXPECT_EQ(enough.step_ns, found.step_ns);
    EXPECT_LE(enough.work, found.work);
  }
  EXPECT_GT(found_any, 8);
}

TEST(ReducePressure, StopsAtItsSwitchAndItsWork) {
  const Problem problem = RandomProblem(3, 30, false, false);
  SearchModelOptions off;
  off.tuning.reduce_pressure.enabled = false;
  for (const bool enabled : {true, false}) {
    const SearchModel model =
        MakeSearchModel(problem, enabled ? SearchModelOptions{} : off);
    SearchState state(model, GivenOrder(model), PeakOf(model) / 2);
    const double excess_area = state.excess_area();
    WorkBudget effort{.left = 20'000};
    ReducePressure(state, {.seed = 1}, effort);
    if (!enabled) {
      EXPECT_EQ(state.ToSchedule().items, GivenOrder(model).items);
      EXPECT_EQ(effort.left, 20'000);
      continue;
    }
    EXPECT_LT(state.excess_area(), excess_area);
    EXPECT_LE(state.PeakBytes(), static_cast<double>(PeakOf(model)));
    EXPECT_EQ(state.compute_ns(), model.compute_ns);
  }
}

}  // namespace
}  // namespace loadline::planner
