// When the search within one number of bytes ends. What it finds: solve_test.cc
// and, against the optimum, bound_test.cc.
#include "planner/search/point_search.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "planner/bound/bound.h"
#include "planner/schedule/simulate.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

// Hours, were it spent.
constexpr int64_t kNoEnd = 1'000'000'000'000'000;

TEST(SearchAtPoint, EndsOnceAProofSaysThatNothingIsFaster) {
  int proven = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Problem problem = RandomProblem(seed, 12, false, false);
    const SearchModel model = MakeSearchModel(problem, true, false);
    const std::vector<Schedule> orders = SeedOrders(model);
    PointSearchOptions options;
    options.target_bytes =
        FindLifetimes(model, GivenOrder(model)).peak_bytes * 7 / 10;
    options.work = 20'000;
    const std::vector<FoundSchedule> found =
        SearchAtPoint(model, orders, {}, options, {});
    StepBoundOptions bound;
    bound.budget_bytes = options.target_bytes;
    bound.work_limit = 1000;
    if (found.empty() || found.front().step_ns <= BoundStep(model) ||
        found.front().step_ns > BoundStepAt(model, bound).step_ns) {
      continue;
    }
    ++proven;
    options.work = kNoEnd;
    const std::vector<FoundSchedule> again =
        SearchAtPoint(model, orders, {found.front().schedule}, options, {});
    EXPECT_EQ(again.front().step_ns, found.front().step_ns) << seed;
  }
  EXPECT_GT(proven, 3);
}

TEST(SearchAtPoint, EndsOnceAProofSaysThatNothingFits) {
  const Problem problem = RandomProblem(1, 30, false, false);
  const SearchModel model = MakeSearchModel(problem, true, false);
  PointSearchOptions options;
  options.target_bytes = BoundPeak(model).bytes - 1;
  options.work = kNoEnd;
  EXPECT_TRUE(SearchAtPoint(model, SeedOrders(model), {}, options, {}).empty());
}

}  // namespace
}  // namespace loadline::planner
