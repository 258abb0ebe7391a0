// Sets that sum to zero, against trying all sets.
#include "planner/pack/zero_sums.h"

#include <bit>
#include <cstdint>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

std::vector<int64_t> Values(TestRandom& random, int count, int64_t most) {
  std::vector<int64_t> values;
  while (static_cast<int>(values.size()) < count) {
    const int64_t value = random.In(1, most);
    values.push_back(random.In(0, 1) == 0 ? value : -value);
  }
  return values;
}

TEST(ZeroSums, FindsAllSetsOfUpToHalfTheValues) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    TestRandom random(seed);
    const int count = static_cast<int>(random.In(2, 9));
    const std::vector<int64_t> values = Values(random, count, 12);
    std::set<std::vector<int>> expected;
    for (uint32_t set = 1; set < 1U << count; ++set) {
      int64_t sum = 0;
      std::vector<int> members;
      for (int i = 0; i < count; ++i) {
        if ((set >> i & 1) == 0) continue;
        sum += values[i];
        members.push_back(i);
      }
      if (sum == 0 && 2 * std::popcount(set) <= count) expected.insert(members);
    }
    PackTuning tuning;
    tuning.most_sum_doubt = 1e9;
    int64_t work = 0;
    std::set<std::vector<int>> found;
    double doubt = 0;
    for (const ZeroSum& sum : FindZeroSums(values, tuning, work)) {
      EXPECT_GE(sum.doubt, doubt);
      doubt = sum.doubt;
      found.insert(sum.members);
    }
    EXPECT_EQ(found, expected) << seed;
    EXPECT_GT(work, 0);
  }
}

// Six of 30 large values sum to zero: nothing else does.
TEST(ZeroSums, FindsSixOfManyLargeValues) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    TestRandom random(seed);
    std::vector<int64_t> values = Values(random, 30, int64_t{1} << 40);
    const std::vector<int> members = {2, 5, 11, 17, 23, 29};
    values[29] = 0;
    for (int m : {2, 5, 11, 17, 23}) values[29] -= values[m];
    int64_t work = 0;
    const std::vector<ZeroSum> sums = FindZeroSums(values, {}, work);
    ASSERT_EQ(sums.size(), 1u) << seed;
    EXPECT_EQ(sums[0].members, members);
  }
}

TEST(ZeroSums, LeavesOutWhatChanceExplains) {
  int64_t work = 0;
  EXPECT_TRUE(FindZeroSums({1, -1, 2, -2, 3, -3}, {}, work).empty());
}

}  // namespace
}  // namespace loadline::planner
