// Start orders: valid, without repeats, updates early, and few bytes alive.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "planner/schedule/simulate.h"
#include "planner/search/search.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

std::vector<int> NodesOf(const Schedule& schedule) {
  std::vector<int> nodes;
  for (const Item& item : schedule.items) nodes.push_back(item.id);
  return nodes;
}

TEST(SeedOrders, AreValidWithoutRepeatsTheGivenOrderFirst) {
  int several = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const Problem problem = RandomProblem(seed, 5 + static_cast<int>(seed % 30),
                                          seed % 2 == 0, false);
    const SearchModel model = MakeSearchModel(problem);
    const std::vector<Schedule> orders = SeedOrders(model);
    ASSERT_EQ(orders.front().items, GivenOrder(model).items);
    for (size_t i = 0; i < orders.size(); ++i) {
      ASSERT_TRUE(FindLifetimes(model, orders[i]).valid) << seed;
      ASSERT_EQ(orders[i].items.size(), problem.nodes.size());
      for (size_t j = 0; j < i; ++j) {
        ASSERT_NE(orders[i].items, orders[j].items);
      }
    }
    several += orders.size() > 1;
  }
  EXPECT_GT(several, 25);
}

// Two weights: gradients of both (nodes 0 and 1), then both updates.
Problem LateUpdates() {
  Problem problem;
  problem.addresses = false;
  // x, two gradients, two weights, two new weights.
  for (int v = 0; v < 7; ++v) {
    problem.values.push_back(
        {.file_id = v, .bytes = 100, .persistent = v >= 3});
  }
  const ValueId x{0}, g0{1}, g1{2}, w0{3}, w1{4}, n0{5}, n1{6};
  problem.nodes = {
      {0, "grad0", 100, {x}, {g0}, 0, true, {}, {}},
      {1, "grad1", 100, {x}, {g1}, 0, true, {}, {}},
      {2, "update0", 100, {g0, w0}, {n0}, 0, false, {{w0, n0}}, {}},
      {3, "update1", 100, {g1, w1}, {n1}, 0, false, {{w1, n1}}, {}}};
  return problem;
}

TEST(SeedOrders, RunEachUpdateDirectlyAfterItsGradient) {
  const Problem problem = LateUpdates();
  SearchModelOptions options;
  options.tuning.orders.fewest_bytes = false;
  const SearchModel model = MakeSearchModel(problem, options);
  const std::vector<Schedule> orders = SeedOrders(model);
  ASSERT_EQ(orders.size(), 2u);
  EXPECT_EQ(NodesOf(orders[1]), (std::vector<int>{0, 2, 1, 3}));
}

// Node 2n makes 100 bytes, node 2n + 1 turns them into 1 byte; given are all
// large ones first.
TEST(SeedOrders, ListSchedulingKeepsFewBytesAlive) {
  constexpr int kPairs = 6;
  Problem problem;
  problem.addresses = false;
  problem.values.push_back({.file_id = 0, .bytes = 1});
  for (int n = 0; n < 2 * kPairs; ++n) {
    problem.values.push_back({.file_id = n + 1, .bytes = n < kPairs ? 100 : 1});
    problem.nodes.push_back(
        {.file_id = n,
         .time_ns = 10,
         .inputs = {ValueId{n < kPairs ? 0 : n - kPairs + 1}},
         .outputs = {ValueId{n + 1}}});
  }
  for (int n = kPairs; n < 2 * kPairs; ++n) {
    problem.outputs.push_back(ValueId{n + 1});
  }
  SearchModelOptions options;
  options.tuning.orders.early_updates = false;
  const SearchModel model = MakeSearchModel(problem, options);
  const std::vector<Schedule> orders = SeedOrders(model);
  ASSERT_EQ(orders.size(), 2u);
  EXPECT_EQ(FindLifetimes(model, orders[0]).peak_bytes, kPairs * 100 + 1);
  // One large value at a time, and the small ones so far.
  EXPECT_EQ(FindLifetimes(model, orders[1]).peak_bytes, 100 + kPairs);
}

TEST(SeedOrders, CanBeSwitchedOff) {
  const Problem problem = LateUpdates();
  SearchModelOptions options;
  options.tuning.orders = {.early_updates = false, .fewest_bytes = false};
  EXPECT_EQ(SeedOrders(MakeSearchModel(problem, options)).size(), 1u);
}

}  // namespace
}  // namespace loadline::planner
