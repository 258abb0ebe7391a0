// PQ-trees against the list of all orders.
#include "planner/pack/pq_tree.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

using Ids = std::vector<int>;
using Orders = std::set<Ids>;

Orders AllOrders(Ids ids) {
  Orders orders;
  std::sort(ids.begin(), ids.end());
  do {
    orders.insert(ids);
  } while (std::next_permutation(ids.begin(), ids.end()));
  return orders;
}

// Where the ids are in the order, if in a row; else -1.
int Row(const Ids& order, const Ids& ids) {
  int first = -1, count = 0;
  for (int i = 0; i < static_cast<int>(order.size()); ++i) {
    if (std::find(ids.begin(), ids.end(), order[i]) == ids.end()) continue;
    if (count > 0 && first + count != i) return -1;
    if (count++ == 0) first = i;
  }
  return first;
}

Ids Exchanged(const Ids& order, int first, size_t taken, const Ids& by) {
  Ids result(order.begin(), order.begin() + first);
  result.insert(result.end(), by.begin(), by.end());
  result.insert(result.end(), order.begin() + first + taken, order.end());
  return result;
}

struct TreeStep {
  Ids taken, by;
};

TreeStep RandomStep(TestRandom& random, Ids& live, int& next) {
  TreeStep step;
  const int64_t most = std::min<int64_t>(4, live.size());
  for (int64_t taken = random.In(1, most); taken > 0; --taken) {
    const int64_t at = random.In(0, static_cast<int64_t>(live.size()) - 1);
    step.taken.push_back(live[at]);
    live.erase(live.begin() + at);
  }
  const auto room = static_cast<int64_t>(6 - live.size());
  for (int64_t added = random.In(0, std::min<int64_t>(3, room)); added > 0;
       --added) {
    step.by.push_back(next++);
  }
  return step;
}

// What Replace returns, put back into any later order, gives an earlier one.
void ExpectRestores(const PqTree::Replaced& replaced, const TreeStep& step,
                    const Orders& before, const Orders& now) {
  for (const Ids& order : now) {
    const int first = Row(order, step.by);
    Ids row = replaced.order;
    if (replaced.neighbor >= 0) {
      const bool is_before = Row(order, {replaced.neighbor}) < first;
      if (is_before != replaced.neighbor_is_before) {
        std::reverse(row.begin(), row.end());
      }
    }
    EXPECT_TRUE(before.contains(Exchanged(order, first, step.by.size(), row)));
  }
}

TEST(PqTree, AllowsTheOrdersInWhichAllSetsWereInARow) {
  int possible = 0, impossible = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    TestRandom random(seed);
    Ids live;
    int next = 0;
    for (int64_t count = random.In(2, 6); count > 0; --count) {
      live.push_back(next++);
    }
    Orders orders = AllOrders(live);
    PqTree tree(live);
    for (int i = 0; i < 6 && !live.empty(); ++i) {
      const Ids all = live;
      const TreeStep step = RandomStep(random, live, next);
      Orders before, now;
      for (const Ids& order : orders) {
        const int first = Row(order, step.taken);
        if (first < 0) continue;
        before.insert(order);
        for (const Ids& by : AllOrders(step.by)) {
          now.insert(Exchanged(order, first, step.taken.size(), by));
        }
      }
      EXPECT_EQ(tree.CanReplace(step.taken), !before.empty()) << seed;
      const auto replaced = tree.Replace(step.taken, step.by);
      ASSERT_EQ(replaced.has_value(), !before.empty()) << seed;
      ++(replaced ? possible : impossible);
      if (!replaced) {
        live = all;
        continue;
      }
      if (!step.by.empty()) ExpectRestores(*replaced, step, before, now);
      orders = now;
      live.insert(live.end(), step.by.begin(), step.by.end());
      EXPECT_TRUE(orders.contains(tree.Order())) << seed;
    }
  }
  EXPECT_GT(possible, 500);
  EXPECT_GT(impossible, 5);
}

// Removing the other leaves, one by one, makes the found ones consecutive.
TEST(PqTree, MostConsecutiveLeavesCanBeReplacedWithoutTheOthers) {
  int some = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    TestRandom random(seed);
    Ids live = {0, 1, 2, 3, 4, 5};
    int next = 6;
    PqTree tree(live);
    for (int i = 0; i < 8 && live.size() > 1; ++i) {
      const Ids all = live;
      const TreeStep step = RandomStep(random, live, next);
      if (tree.Replace(step.taken, step.by)) {
        live.insert(live.end(), step.by.begin(), step.by.end());
        continue;
      }
      const Ids found = tree.MostConsecutive(step.taken);
      ASSERT_FALSE(found.empty());
      ASSERT_LT(found.size(), step.taken.size()) << seed;
      ++some;
      for (int id : step.taken) {
        if (std::find(found.begin(), found.end(), id) == found.end()) {
          ASSERT_TRUE(tree.Replace({id}, {}).has_value());
        }
      }
      EXPECT_TRUE(tree.CanReplace(found)) << seed;
      break;
    }
  }
  EXPECT_GT(some, 10);
}

}  // namespace
}  // namespace loadline::planner
