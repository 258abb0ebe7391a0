// From schedules of all layers to schedules of few.
#include "planner/layers/restrict_layers.h"

#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "planner/schedule/simulate.h"
#include "planner/search/point_search.h"
#include "tests/planner/support/layered_problem.h"

namespace loadline::planner {
namespace {

TEST(RestrictSchedule, MakesTheGivenOrderOfTheGivenOrder) {
  for (const Problem& problem : {SmallTransformer(24), Chain(40)}) {
    const Coarsened coarse(problem);
    const std::optional<Schedule> few =
        RestrictSchedule(coarse.all, coarse.few, coarse.shrunk,
                         MatchLayers(coarse.layers, coarse.shrunk.layers, 1),
                         GivenOrder(coarse.model));
    ASSERT_TRUE(few.has_value());
    EXPECT_EQ(few->items, GivenOrder(coarse.few_model).items);
  }
}

// What was expanded comes back: the same step and the same bytes.
TEST(RestrictSchedule, IsTheReverseOfExpandSchedule) {
  int restricted = 0;
  for (const Problem& problem : {SmallTransformer(30), Chain(60)}) {
    const Coarsened coarse(problem);
    const std::vector<Schedule> orders = SeedOrders(coarse.few_model);
    for (int percent : {80, 60}) {
      PointSearchOptions options;
      options.target_bytes =
          FindLifetimes(coarse.few_model, orders[0]).peak_bytes / 100 * percent;
      options.work = 100'000;
      const std::vector<FoundSchedule> finds =
          SearchAtPoint(coarse.few_model, orders, {}, options, {});
      ASSERT_FALSE(finds.empty()) << percent;
      for (int blocks : {1, 3}) {
        const std::vector<int> match =
            MatchLayers(coarse.layers, coarse.shrunk.layers, blocks);
        const std::optional<Schedule> all =
            ExpandSchedule(coarse.all, coarse.few, coarse.shrunk, match,
                           finds.front().schedule);
        ASSERT_TRUE(all.has_value());
        const std::optional<Schedule> few = RestrictSchedule(
            coarse.all, coarse.few, coarse.shrunk, match, *all);
        ASSERT_TRUE(few.has_value());
        ++restricted;
        EXPECT_EQ(few->host_home, finds.front().schedule.host_home);
        EXPECT_NEAR(FindTimes(coarse.few_model, *few).step_ns,
                    finds.front().step_ns, 0.02 * finds.front().step_ns);
      }
    }
  }
  EXPECT_EQ(restricted, 8);
}

}  // namespace
}  // namespace loadline::planner
