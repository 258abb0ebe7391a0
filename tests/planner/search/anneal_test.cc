// Simulated annealing against the exact optimum of tiny problems, and its
// limits.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
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

std::vector<AnnealWalk> WalksAt(const SearchModel& model, int64_t target_bytes,
                                int count, uint64_t seed) {
  std::vector<AnnealWalk> walks(count);
  for (AnnealWalk& walk : walks) {
    walk.state =
        std::make_unique<SearchState>(model, GivenOrder(model), target_bytes);
    walk.seed = seed++;
  }
  return walks;
}

Found AnnealAt(const SearchModel& model, int64_t target_bytes,
               const AnnealOptions& options, uint64_t seed) {
  std::vector<AnnealWalk> walks = WalksAt(model, target_bytes, 1, seed);
  WorkBudget effort{.left = kPlenty};
  Anneal(absl::MakeSpan(walks), options, effort);
  return {std::move(walks[0].best), walks[0].best_step_ns,
          kPlenty - effort.left};
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
    const Found found = AnnealAt(model, target_bytes, {.moves = 30'000}, seed);
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
    AnnealOptions options = {.moves = 20'000};
    const Found found = AnnealAt(model, target_bytes, options, seed);
    if (!found.schedule) continue;
    ++found_any;
    const Lifetimes lives = FindLifetimes(model, *found.schedule);
    ASSERT_TRUE(lives.valid);
    EXPECT_LE(lives.peak_bytes, target_bytes);
    EXPECT_NEAR(FindTimes(model, *found.schedule).step_ns, found.step_ns, 1);
    // The same seed gives the same schedule for the same work.
    const Found again = AnnealAt(model, target_bytes, options, seed);
    EXPECT_EQ(again.schedule->items, found.schedule->items);
    EXPECT_EQ(again.work, found.work);
    // Nothing faster than a floor is reported, and it stops at what is enough.
    options.floor_ns = found.step_ns + 1;
    const Found floored = AnnealAt(model, target_bytes, options, seed);
    if (floored.schedule) {
      EXPECT_GE(floored.step_ns, options.floor_ns);
    }
    options.floor_ns = 0;
    options.enough_ns = found.step_ns;
    const Found enough = AnnealAt(model, target_bytes, options, seed);
    EXPECT_EQ(enough.step_ns, found.step_ns);
    EXPECT_LE(enough.work, found.work);
  }
  EXPECT_GT(found_any, 8);
}

// Four walks on one thread and on four: the same schedules and the same work,
// and no more of it than was granted.
TEST(Anneal, WalksDoNotDependOnThreads) {
  int found_any = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Problem problem = RandomProblem(seed, 40, true, seed % 2 == 0);
    const SearchModel model = MakeSearchModel(problem);
    const int64_t target_bytes = PeakOf(model) * 7 / 10;
    std::vector<AnnealWalk> first;
    int64_t first_left = 0;
    for (int threads : {1, 4}) {
      Workers workers(threads);
      std::vector<AnnealWalk> walks = WalksAt(model, target_bytes, 4, seed);
      WorkBudget effort{.left = 20'000, .workers = &workers};
      Anneal(absl::MakeSpan(walks), {.moves = 5'000, .segments = 8}, effort);
      EXPECT_GE(effort.left, 0);
      if (threads == 1) {
        first = std::move(walks);
        first_left = effort.left;
        continue;
      }
      EXPECT_EQ(effort.left, first_left);
      for (size_t i = 0; i < walks.size(); ++i) {
        EXPECT_EQ(walks[i].best_step_ns, first[i].best_step_ns);
        EXPECT_EQ(walks[i].state->ToSchedule().items,
                  first[i].state->ToSchedule().items);
        found_any += walks[i].best.has_value();
      }
    }
  }
  EXPECT_GT(found_any, 10);
}

// Selection makes several walks better than as many alone.
TEST(Anneal, WalksThatMeetEndLower) {
  double apart_ns = 0, together_ns = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const Problem problem = RandomProblem(seed, 60, true, true);
    const SearchModel model = MakeSearchModel(problem);
    const int64_t target_bytes = PeakOf(model) * 6 / 10;
    for (int segments : {1, 8}) {
      std::vector<AnnealWalk> walks = WalksAt(model, target_bytes, 4, seed);
      WorkBudget effort{.left = kPlenty};
      Anneal(absl::MakeSpan(walks), {.moves = 4'000, .segments = segments},
             effort);
      double best_ns = 2.0 * static_cast<double>(model.compute_ns);
      for (const AnnealWalk& walk : walks) {
        best_ns = std::min(best_ns, walk.best_step_ns);
      }
      (segments == 1 ? apart_ns : together_ns) +=
          best_ns / static_cast<double>(model.compute_ns);
    }
  }
  EXPECT_LT(together_ns, apart_ns);
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
