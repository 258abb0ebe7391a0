// The most bytes alive at one position, against counting position by position.
#include <algorithm>
#include <map>
#include <vector>

#include "gtest/gtest.h"
#include "planner/base/align.h"
#include "planner/pack/pack.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

// Items of a group count once: the one that started first.
int64_t Counted(const std::vector<PackItem>& items) {
  int64_t most = 0;
  for (int64_t position = 0; position < 20; ++position) {
    int64_t bytes = 0;
    std::map<int64_t, int64_t> of_group;
    for (const PackItem& item : items) {
      if (position < item.lower || position >= item.upper) continue;
      if (item.group < 0) {
        bytes += item.size;
      } else {
        of_group[item.group] = item.size;
      }
    }
    for (const auto& [group, size] : of_group) bytes += size;
    most = std::max(most, bytes);
  }
  return most;
}

TEST(PackLowerBound, IsTheMostBytesAliveAtOnePosition) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    TestRandom random(seed);
    std::vector<PackItem> items;
    for (int i = 0; i < 12; ++i) {
      PackItem item;
      item.lower = random.In(0, 18);
      item.upper = random.In(item.lower, 19);
      item.size = random.In(0, 9);
      if (random.OneIn(3)) {
        item.group = random.In(0, 1);
        item.size = 5;
      }
      items.push_back(item);
    }
    EXPECT_EQ(PackLowerBound(items), Counted(items)) << seed;
  }
}

TEST(PackLowerBound, PadsAllButTheTopmostItem) {
  const std::vector<PackItem> items = {{.lower = 0, .upper = 2, .size = 5},
                                       {.lower = 1, .upper = 3, .size = 6}};
  EXPECT_EQ(PackLowerBound(items), 11);
  EXPECT_EQ(PackLowerBound(items, 8), 8 + 5);
}

}  // namespace
}  // namespace loadline::planner
