// Bytes that cost no time, on steps of small transformers.
#include "planner/layout/fit_layout.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "planner/schedule/simulate.h"
#include "tests/planner/support/transformer_problem.h"

namespace loadline::planner {
namespace {

constexpr int64_t kSlimWork = 40'000;

Problem SmallStep() {
  TransformerShape shape;
  shape.layers = 3;
  shape.width = 128;
  shape.tokens = 1024;
  shape.vocabulary = 1024;
  shape.memory_bytes_per_s = 1e10;
  return TransformerProblem(shape);
}

int64_t PartOfPeak(const SearchModel& model, double part) {
  return static_cast<int64_t>(
      part *
      static_cast<double>(FindLifetimes(model, GivenOrder(model)).peak_bytes));
}

// Schedules within the budget that the search leaves without slimming.
std::vector<FoundSchedule> Finds(const SearchModel& model, int64_t budget_bytes,
                                 uint64_t seed) {
  PointSearchOptions options;
  options.target_bytes = budget_bytes;
  options.work = 100'000;
  options.seed = seed;
  return SearchAtPoint(model, SeedOrders(model), {}, options, WorkBudget());
}

double AreaOver(const Lifetimes& lives, double bytes) {
  double excess_area = 0;
  for (int64_t live : lives.live_bytes) {
    excess_area += std::max(0.0, static_cast<double>(live) - bytes);
  }
  return excess_area;
}

TEST(ReducePressure, TakesBytesAwayAndCostsNothing) {
  const Problem problem = SmallStep();
  const SearchModel model = MakeSearchModel(problem, true, true);
  for (double part : {0.6, 0.45, 0.35}) {
    const int64_t budget_bytes = PartOfPeak(model, part);
    const std::vector<FoundSchedule> finds = Finds(model, budget_bytes, 1);
    ASSERT_FALSE(finds.empty());
    const Schedule& before = finds.front().schedule;
    const double target_bytes = 0.9 * static_cast<double>(budget_bytes);
    SearchState state(model, before, static_cast<int64_t>(target_bytes));
    WorkBudget effort;
    effort.left = kSlimWork;
    const double floor_ns = finds.front().step_ns - 1;
    ReducePressure(state, {.floor_ns = floor_ns}, effort);
    const Schedule after = state.ToSchedule();
    const Lifetimes old_lives = FindLifetimes(model, before);
    const Lifetimes lives = FindLifetimes(model, after);
    ASSERT_TRUE(lives.valid);
    EXPECT_LE(lives.peak_bytes, old_lives.peak_bytes);
    const double step_ns = FindTimes(model, after).step_ns;
    EXPECT_LE(step_ns, FindTimes(model, before).step_ns);
    EXPECT_GE(step_ns, floor_ns);
    EXPECT_LT(AreaOver(lives, target_bytes),
              0.7 * AreaOver(old_lives, target_bytes));
  }
}

TEST(FitLayout, LaysOutInTheBudgetWhatLiesTooHigh) {
  const Problem problem = SmallStep();
  const SearchModel model = MakeSearchModel(problem, true, true);
  int too_high = 0, fitted = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const int64_t budget_bytes =
        PartOfPeak(model, 0.25 + 0.05 * static_cast<double>(seed));
    for (FoundSchedule& found : Finds(model, budget_bytes, seed)) {
      const LayOutOptions place = {.budget_bytes = budget_bytes,
                                   .pack_work_limit = 2000};
      int64_t excess_bytes = 0, less_bytes = 0;
      if (LayOut(model, found.schedule, found.step_ns, place, &excess_bytes)) {
        continue;
      }
      ++too_high;
      const double step_ns = found.step_ns;
      const std::optional<LaidOutSchedule> placed = FitLayout(
          model, found, {place, 0, kSlimWork, seed}, WorkBudget(), &less_bytes);
      EXPECT_LE(found.step_ns, step_ns);
      if (!placed) {
        EXPECT_LE(less_bytes, excess_bytes);
        continue;
      }
      ++fitted;
      EXPECT_LE(placed->arena_bytes, budget_bytes);
      EXPECT_LE(placed->step_ns, step_ns);
    }
  }
  EXPECT_GT(too_high, 0);
  EXPECT_GT(3 * fitted, too_high) << fitted << " of " << too_high;
}

}  // namespace
}  // namespace loadline::planner
