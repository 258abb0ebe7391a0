// When the search at one budget ends, and its switches. What it finds is tested
// in solve_test.cc and, against the optimum, in bound_test.cc.
#include "planner/search/point_search.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "planner/bound/bound.h"
#include "planner/schedule/simulate.h"
#include "tests/planner/support/layered_graph.h"
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

// Every switch of the stages of a point.
const auto kSwitches = [](SearchTuning& tuning) {
  SearchTuning::PointSearch& point = tuning.point;
  return std::vector<bool*>{&point.lane_price_descents,
                            &point.start_descents,
                            &point.stop_at_bound,
                            &point.cold_anneal,
                            &point.warm_anneal,
                            &point.reheat,
                            &point.finish_greedily,
                            &tuning.peak_cut_seed.enabled,
                            &tuning.persistent_placement.enabled,
                            &tuning.window.enabled,
                            &tuning.clean_up.enabled,
                            &tuning.orders.early_updates,
                            &tuning.orders.fewest_bytes};
};

std::vector<FoundSchedule> SearchWith(const Problem& problem,
                                      const SearchTuning& tuning) {
  SearchModelOptions with;
  with.tuning = tuning;
  const SearchModel model = MakeSearchModel(problem, with);
  PointSearchOptions options;
  options.target_bytes =
      FindLifetimes(model, GivenOrder(model)).peak_bytes * 7 / 10;
  options.work = 30'000;
  std::vector<FoundSchedule> found =
      SearchAtPoint(model, SeedOrders(model), {}, options, {});
  for (const FoundSchedule& one : found) {
    const Lifetimes lives = FindLifetimes(model, one.schedule);
    EXPECT_TRUE(lives.valid);
    EXPECT_LE(lives.peak_bytes, options.target_bytes);
  }
  return found;
}

TEST(SearchAtPoint, EveryStageCanBeSwitchedOff) {
  const Problem problem = RandomProblem(4, 40, true, true);
  const std::vector<FoundSchedule> all = SearchWith(problem, {});
  ASSERT_FALSE(all.empty());
  const size_t count = [] {
    SearchTuning tuning;
    return kSwitches(tuning).size();
  }();
  for (size_t off = 0; off < count; ++off) {
    SearchTuning tuning;
    *kSwitches(tuning)[off] = false;
    EXPECT_FALSE(SearchWith(problem, tuning).empty()) << off;
  }
}

// So little work is one walk's: three share it in other moves, on any number of
// threads.
TEST(SearchAtPoint, MakesAsManyWalksAsAskedFor) {
  Workers one(1), three(3);
  int found = 0, other = 0;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const Problem problem = LayeredGraph(seed, 90);
    const SearchModel model = MakeSearchModel(problem, true, false);
    const std::vector<Schedule> orders = SeedOrders(model);
    PointSearchOptions options;
    options.target_bytes =
        FindLifetimes(model, GivenOrder(model)).peak_bytes * 8 / 10;
    options.work = 60'000;
    const auto step_ns = [&](Workers& workers, int walks) {
      options.least_walks = walks;
      const std::vector<FoundSchedule> finds =
          SearchAtPoint(model, orders, {}, options, {.workers = &workers});
      return finds.empty() ? 0.0 : finds.front().step_ns;
    };
    const double plain_ns = step_ns(one, 1);
    const double walks_ns = step_ns(one, 3);
    found += plain_ns > 0;
    other += walks_ns != plain_ns;
    EXPECT_EQ(step_ns(three, 3), walks_ns);
  }
  EXPECT_GT(found, 0);
  EXPECT_GT(other, 0);
}

TEST(SearchAtPoint, OnlyTheFirstDescentIsLeftWithoutStages) {
  SearchTuning none;
  for (bool* on : kSwitches(none)) *on = false;
  int faster = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const Problem problem = RandomProblem(seed, 40, true, seed % 2 == 0);
    const std::vector<FoundSchedule> greedy = SearchWith(problem, none);
    ASSERT_LE(greedy.size(), 1u);
    const std::vector<FoundSchedule> all = SearchWith(problem, {});
    ASSERT_GE(all.size(), greedy.size());
    if (greedy.empty()) continue;
    EXPECT_LE(all.front().step_ns, greedy.front().step_ns);
    faster += all.front().step_ns < greedy.front().step_ns;
  }
  EXPECT_GT(faster, 1);
}

}  // namespace
}  // namespace loadline::planner
