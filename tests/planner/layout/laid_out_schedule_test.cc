// Arenas of schedules, and what is said where there is none.
#include "planner/layout/laid_out_schedule.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "gtest/gtest.h"
#include "planner/schedule/simulate.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

constexpr int64_t kPackWork = 2000;

TEST(LayOutTightest, TakesTheArenaOfItsPlan) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Problem problem = RandomProblem(seed, 20, true, true);
    const SearchModel model = MakeSearchModel(problem, true, true);
    const auto laid_out =
        LayOutTightest(model, GivenOrder(model), 7, kPackWork);
    ASSERT_TRUE(laid_out.ok()) << laid_out.status();
    EXPECT_EQ(laid_out->step_ns, 7);
    EXPECT_EQ(laid_out->arena_bytes, laid_out->plan.arena_bytes);
    EXPECT_GE(laid_out->arena_bytes,
              FindLifetimes(model, GivenOrder(model)).raw_peak_bytes);
    // Without addresses the arena is the sum of live bytes.
    problem.addresses = false;
    const SearchModel sums = MakeSearchModel(problem, true, true);
    EXPECT_EQ(LayOutTightest(sums, GivenOrder(sums), 7, kPackWork)->arena_bytes,
              FindLifetimes(sums, GivenOrder(sums)).peak_bytes);
  }
}

TEST(LayOutTightest, RefusesAnOrderThatReadsTooEarly) {
  const Problem problem = RandomProblem(1, 20, true, true);
  const SearchModel model = MakeSearchModel(problem, true, true);
  Schedule reversed = GivenOrder(model);
  std::reverse(reversed.items.begin(), reversed.items.end());
  EXPECT_EQ(LayOutTightest(model, reversed, 7, kPackWork).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(LayOut, FitsTheTightestArenaAndSaysWhatIsMissingBelow) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Problem problem = RandomProblem(seed, 20, true, true);
    const SearchModel model = MakeSearchModel(problem, true, true);
    const Schedule given = GivenOrder(model);
    const int64_t arena_bytes =
        LayOutTightest(model, given, 7, kPackWork)->arena_bytes;
    int64_t excess_bytes = 0;
    const auto fits =
        LayOut(model, given, 7, {arena_bytes, kPackWork}, &excess_bytes);
    ASSERT_TRUE(fits.has_value()) << seed;
    EXPECT_LE(fits->arena_bytes, arena_bytes);
    EXPECT_EQ(excess_bytes, 0);
    const int64_t peak_bytes = FindLifetimes(model, given).raw_peak_bytes;
    const auto none =
        LayOut(model, given, 7, {peak_bytes - 1, kPackWork}, &excess_bytes);
    EXPECT_FALSE(none.has_value());
    EXPECT_GE(excess_bytes, 1);
    EXPECT_GE(peak_bytes - 1 + excess_bytes, peak_bytes);
  }
}

}  // namespace
}  // namespace loadline::planner
