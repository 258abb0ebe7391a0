// Random steps with weights and optimizer state, against the simulation from
// scratch, and that every single home was asked again.
#include "planner/search/persistent_placement.h"

#include <cmath>
#include <cstdint>

#include "gtest/gtest.h"
#include "planner/schedule/simulate.h"
#include "planner/search/edits.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

constexpr int64_t kPlacementWork = 1'000'000;

WorkBudget Much() {
  WorkBudget effort;
  effort.left = kPlacementWork;
  return effort;
}

// A state within three fifths of what keeping everything takes, or none.
class Lowered {
 public:
  explicit Lowered(uint64_t seed)
      : problem_(RandomProblem(seed, 120, true, true)),
        model_(MakeSearchModel(problem_, true, true)),
        state_(model_, SeedOrders(model_).back(),
               FindLifetimes(model_, GivenOrder(model_)).peak_bytes * 3 / 5) {
    WorkBudget effort = Much();
    fits_ = state_.valid() && LowerPeak(state_, {.lane_price = 0.05}, effort);
  }

  bool fits() const { return fits_; }
  const SearchModel& model() const { return model_; }
  SearchState& state() { return state_; }

  void ExpectMatchesSimulation() {
    const Schedule schedule = state_.ToSchedule();
    const Lifetimes lives = FindLifetimes(model_, schedule);
    ASSERT_TRUE(lives.valid);
    EXPECT_LE(static_cast<double>(lives.peak_bytes), state_.target());
    EXPECT_NEAR(FindTimes(model_, schedule).step_ns, state_.Makespan(), 1);
  }

 private:
  const Problem problem_;
  const SearchModel model_;
  SearchState state_;
  bool fits_ = false;
};

TEST(PlacePersistentValues, MakesStepsShorterAndNothingElse) {
  int tried = 0, shorter = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Lowered lowered(seed);
    if (!lowered.fits()) continue;
    ++tried;
    SearchState& state = lowered.state();
    const double before_ns = state.Makespan();
    WorkBudget effort = Much();
    const bool any = PlacePersistentValues(state, effort);
    EXPECT_EQ(any, state.Makespan() < before_ns) << seed;
    EXPECT_LE(state.excess_area(), 0) << seed;
    lowered.ExpectMatchesSimulation();
    shorter += any ? 1 : 0;
    // Nobody gains any more.
    EXPECT_FALSE(PlacePersistentValues(state, effort)) << seed;
  }
  EXPECT_GT(tried, 20);
  EXPECT_GT(shorter, 3);
}

TEST(PlacePersistentValues, TakesBackHomesThatAPlanIsFasterWithout) {
  int tried = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Lowered lowered(seed);
    if (!lowered.fits()) continue;
    SearchState& state = lowered.state();
    WorkBudget effort = Much();
    PlacePersistentValues(state, effort);
    const double best_ns = state.Makespan();
    for (int c = 0; c < static_cast<int>(lowered.model().chains.size()); ++c) {
      state.Respread();
      const int slot = state.PeakSlot();
      const int version = lowered.model().chains[c].versions.front();
      if (state.host_home(c) || state.OutItem(version) >= 0 ||
          !EditHome(state, c, slot, 1.2) || !state.valid() ||
          state.excess_area() > 0 || state.Makespan() <= best_ns * 1.01) {
        state.Undo(0);
        continue;
      }
      ++tried;
      const double worse_ns = state.Makespan();
      state.Commit();
      EXPECT_TRUE(PlacePersistentValues(state, effort)) << seed;
      EXPECT_LT(state.Makespan(), worse_ns) << seed;
      break;
    }
  }
  EXPECT_GT(tried, 3);
}

TEST(PlacePersistentValues, TakesNothingBelowTheFloor) {
  int held = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Lowered free(seed), bound(seed);
    if (!free.fits()) continue;
    const double before_ns = free.state().Makespan();
    WorkBudget effort = Much();
    if (!PlacePersistentValues(free.state(), effort)) continue;
    ++held;
    EXPECT_FALSE(
        PlacePersistentValues(bound.state(), effort, std::round(before_ns) + 1))
        << seed;
    EXPECT_EQ(bound.state().Makespan(), before_ns) << seed;
  }
  EXPECT_GT(held, 3);
}

}  // namespace
}  // namespace loadline::planner
