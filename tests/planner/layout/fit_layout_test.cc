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

int64_t PartOfPeak(const Model& model, double part) {
  return static_cast<int64_t>(
      part *
      static_cast<double>(FindLifetimes(model, GivenOrder(model)).peak_bytes));
}

// Schedules within the budget that the search leaves without slimming.
std::vector<Found> Finds(const Model& model, int64_t budget_bytes,
                         uint64_t seed) {
  PursuitOptions options;
  options.target_bytes = budget_bytes;
  options.work = 100'000;
  options.seed = seed;
  return Pursue(model, StartOrders(model), {}, options, Effort());
}

double AreaOver(const Lifetimes& lives, double bytes) {
  double area = 0;
  for (int64_t live : lives.live_bytes) {
    area += std::max(0.0, static_cast<double>(live) - bytes);
  }
  return area;
}

TEST(Slim, TakesBytesAwayAndCostsNothing) {
  const Problem problem = SmallStep();
  const Model model = MakeModel(problem, true, true);
  for (double part : {0.6, 0.45, 0.35}) {
    const int64_t budget_bytes = PartOfPeak(model, part);
    const std::vector<Found> finds = Finds(model, budget_bytes, 1);
    ASSERT_FALSE(finds.empty());
    const Schedule& before = finds.front().schedule;
    const double target_bytes = 0.9 * static_cast<double>(budget_bytes);
    SearchState state(model, before, static_cast<int64_t>(target_bytes));
    Effort effort;
    effort.left = kSlimWork;
    const double floor_ns = finds.front().step_ns - 1;
    Slim(state, {.floor_ns = floor_ns}, effort);
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

TEST(Fit, LaysOutInTheBudgetWhatLiesTooHigh) {
  const Problem problem = SmallStep();
  const Model model = MakeModel(problem, true, true);
  int too_high = 0, fitted = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const int64_t budget_bytes =
        PartOfPeak(model, 0.25 + 0.05 * static_cast<double>(seed));
    for (Found& found : Finds(model, budget_bytes, seed)) {
      const PlaceOptions place = {.budget_bytes = budget_bytes,
                                  .pack_work_limit = 2000};
      int64_t excess_bytes = 0, less_bytes = 0;
      if (Place(model, found.schedule, found.step_ns, place, &excess_bytes)) {
        continue;
      }
      ++too_high;
      const double step_ns = found.step_ns;
      const std::optional<Placed> placed =
          Fit(model, found, {place, 0, kSlimWork, seed}, Effort(), &less_bytes);
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
