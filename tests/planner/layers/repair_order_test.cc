// Nearly valid orders, made valid.
#include "planner/layers/repair_order.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "planner/schedule/simulate.h"
#include "tests/planner/support/random_problem.h"
#include "tests/planner/support/small_plan.h"

namespace loadline::planner {
namespace {

TEST(RepairOrder, MovesWhatStandsTooEarlyBehindWhatItNeeds) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Problem problem = RandomProblem(seed, 40, true, true);
    const SearchModel model = MakeSearchModel(problem, true, true);
    const Schedule given = GivenOrder(model);
    const std::optional<Schedule> same = RepairOrder(model, given);
    ASSERT_TRUE(same.has_value());
    EXPECT_EQ(same->items, given.items);
    // With one node earlier: as it is where that is valid, else repaired.
    TestRandom random(seed);
    for (int tries = 0; tries < 10; ++tries) {
      Schedule early = given;
      const auto first = early.items.begin();
      const int64_t from = random.In(1, model.node_count - 1);
      std::rotate(first + random.In(0, from - 1), first + from,
                  first + from + 1);
      const std::optional<Schedule> repaired = RepairOrder(model, early);
      ASSERT_TRUE(repaired.has_value());
      EXPECT_TRUE(FindLifetimes(model, *repaired).valid);
      const bool valid = FindLifetimes(model, early).valid;
      EXPECT_EQ(repaired->items == early.items, valid);
    }
  }
}

// Without a copy back, a copy out frees nothing; without a reader, a copy back
// brings nothing.
TEST(RepairOrder, RemovesCopiesWithoutAReader) {
  const Problem problem = SmallProblem();
  const SearchModel model = MakeSearchModel(problem, true, true);
  const Schedule given = GivenOrder(model);
  const auto with = [&](std::vector<std::pair<int, Item>> extra) {
    Schedule schedule = given;
    for (const auto& [at, item] : extra) {
      schedule.items.insert(schedule.items.begin() + at, item);
    }
    return schedule;
  };
  const Item out = {ItemKind::kOut, 2}, in = {ItemKind::kIn, 2};
  const auto only_out = RepairOrder(model, with({{1, out}}));
  ASSERT_TRUE(only_out.has_value());
  EXPECT_EQ(only_out->items, given.items);
  // Value 2 is an output of the step: the copy back before node 1 has a reader,
  // a second one has none.
  const Schedule useful = with({{1, out}, {2, in}});
  const auto both = RepairOrder(model, useful);
  ASSERT_TRUE(both.has_value());
  EXPECT_EQ(both->items, useful.items);
  const auto twice = RepairOrder(model, with({{1, out}, {2, in}, {2, in}}));
  ASSERT_TRUE(twice.has_value());
  EXPECT_EQ(twice->items, useful.items);
}

TEST(RepairOrder, FindsNoneWhereANodeIsMissing) {
  const Problem problem = SmallProblem();
  const SearchModel model = MakeSearchModel(problem, true, true);
  Schedule schedule = GivenOrder(model);
  schedule.items.erase(schedule.items.begin());
  EXPECT_FALSE(RepairOrder(model, schedule).has_value());
}

}  // namespace
}  // namespace loadline::planner
