// From schedules of few layers to schedules of all.
#include "planner/layers/expand_layers.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "planner/layers/schedule_copies.h"
#include "planner/schedule/simulate.h"
#include "planner/search/point_search.h"
#include "tests/planner/support/layered_problem.h"

namespace loadline::planner {
namespace {

TEST(MatchLayers, KeepsTheEndsAndRepeatsBlocksInBetween) {
  Layers all, few;
  all.count = 20;
  few.count = 8;
  few.alike_lower = 1;  // of the few, layers 2 to 5 repeat
  few.alike_upper = 7;
  EXPECT_EQ(MatchLayers(all, few, 1),
            (std::vector<int>{0, 1, 2, 3, 4, 5, 2, 3, 4, 5,
                              2, 3, 4, 5, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(MatchLayers(all, few, 2),
            (std::vector<int>{0, 1, 2, 3, 2, 3, 2, 3, 2, 3,
                              4, 5, 4, 5, 4, 5, 4, 5, 6, 7}));
}

TEST(MatchLayers, StartsEveryBlockWithItsFirstLayer) {
  Layers all, few;
  all.count = 19;  // 15 in the middle: blocks of 7 and 8
  few.count = 8;
  few.alike_lower = 1;
  few.alike_upper = 7;
  EXPECT_EQ(MatchLayers(all, few, 2),
            (std::vector<int>{0, 1, 2, 3, 2, 3, 2, 3, 2, 4, 5, 4, 5, 4, 5, 4, 5,
                              6, 7}));
}

TEST(ExpandSchedule, MakesTheGivenOrderOfTheGivenOrder) {
  for (const Problem& problem : {SmallTransformer(24), Chain(40)}) {
    const Coarsened coarse(problem);
    const std::vector<int> match =
        MatchLayers(coarse.layers, coarse.shrunk.layers, 1);
    const std::optional<Schedule> all =
        ExpandSchedule(coarse.all, coarse.few, coarse.shrunk, match,
                       GivenOrder(coarse.few_model));
    ASSERT_TRUE(all.has_value());
    EXPECT_EQ(all->items.size(), problem.nodes.size());
    EXPECT_EQ(FindTimes(coarse.model, *all).step_ns,
              static_cast<double>(coarse.model.compute_ns));
    EXPECT_EQ(FindLifetimes(coarse.model, *all).peak_bytes,
              FindLifetimes(coarse.model, GivenOrder(coarse.model)).peak_bytes);
  }
}

// A rerun in one of the few layers becomes one in every layer like it.
TEST(ExpandSchedule, RepeatsARerunInEveryLayerLikeIt) {
  const Coarsened coarse(Chain(40));
  const std::vector<int> match =
      MatchLayers(coarse.layers, coarse.shrunk.layers, 1);
  const int layer = coarse.shrunk.layers.alike_lower + 4;
  // Layer i's forward node makes `inner`; its backward node is the first whose
  // inputs include that.
  Schedule few = GivenOrder(coarse.few_model);
  int maker = -1;
  for (size_t n = 0; n < coarse.shrunk.problem.nodes.size(); ++n) {
    if (coarse.shrunk.layers.node_layer[n] == layer &&
        coarse.shrunk.problem.nodes[n].time_ns == 40) {
      maker = static_cast<int>(n);
    }
  }
  ASSERT_GE(maker, 0);
  const ValueId inner = coarse.shrunk.problem.nodes[maker].outputs[0];
  for (size_t p = 0; p < few.items.size(); ++p) {
    const Node& node = coarse.shrunk.problem.nodes[few.items[p].id];
    if (node.time_ns == 80 && node.inputs.back() == inner) {
      few.items.insert(few.items.begin() + static_cast<int64_t>(p),
                       {ItemKind::kRun, maker});
      break;
    }
  }
  ASSERT_TRUE(FindLifetimes(coarse.few_model, few).valid);
  const std::optional<Schedule> all =
      ExpandSchedule(coarse.all, coarse.few, coarse.shrunk, match, few);
  ASSERT_TRUE(all.has_value());
  int64_t like = 0;
  for (int of : match) like += of == layer;
  EXPECT_GT(like, 2);
  EXPECT_EQ(FindTimes(coarse.model, *all).compute_ns,
            coarse.model.compute_ns + 40 * like);
}

TEST(ExpandSchedule, MakesValidSchedulesOfWhatTheSearchFinds) {
  for (const Problem& problem : {SmallTransformer(30), Chain(60)}) {
    const Coarsened coarse(problem);
    const std::vector<Schedule> orders = SeedOrders(coarse.few_model);
    const int64_t peak_bytes =
        FindLifetimes(coarse.few_model, orders[0]).peak_bytes;
    for (int percent : {100, 80, 60, 50}) {
      PointSearchOptions options;
      options.target_bytes = peak_bytes / 100 * percent;
      options.work = 200'000;
      const std::vector<FoundSchedule> finds =
          SearchAtPoint(coarse.few_model, orders, {}, options, {});
      ASSERT_FALSE(finds.empty()) << percent;
      for (int blocks : {1, 3}) {
        const std::vector<int> match =
            MatchLayers(coarse.layers, coarse.shrunk.layers, blocks);
        const std::optional<Schedule> expanded =
            ExpandSchedule(coarse.all, coarse.few, coarse.shrunk, match,
                           finds.front().schedule);
        ASSERT_TRUE(expanded.has_value()) << percent;
        EXPECT_TRUE(FindLifetimes(coarse.model, *expanded).valid);
      }
    }
  }
}

}  // namespace
}  // namespace loadline::planner
