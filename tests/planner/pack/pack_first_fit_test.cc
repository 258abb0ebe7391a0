// First fit: legal layouts, gaps in lives used, improvement within its work.
#include "planner/pack/pack_first_fit.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/planner/pack/pack_layouts.h"

namespace loadline::planner {
namespace {

TEST(PackFirstFit, LaysOutValidlyAndImproves) {
  const PackTuning tuning;
  int improved = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const std::vector<PackItem> items = PlainItems(seed, 40);
    const PackBlocks blocks = MakeBlocks(items);
    const int64_t target = PackLowerBound(items);
    PackFirstFit first_fit(blocks, 1, target, target, seed, tuning);
    PackLayout layout;
    first_fit.TryRules(layout);
    ExpectValid(items, blocks, layout);
    const int64_t by_rules = layout.height_bytes;
    PackWork work{200'000};
    first_fit.Improve(work, layout);
    ExpectValid(items, blocks, layout);
    EXPECT_LE(layout.height_bytes, by_rules);
    EXPECT_TRUE(layout.height_bytes == target || work.Done());
    improved += layout.height_bytes < by_rules;
  }
  EXPECT_GT(improved, 5);
}

TEST(PackFirstFit, UsesGapsInALife) {
  // A group that is away over [2, 8), and an item that fits in its gap.
  const std::vector<PackItem> items = {
      {.lower = 0, .upper = 2, .size = 10, .group = 0},
      {.lower = 8, .upper = 10, .size = 10, .group = 0},
      {.lower = 3, .upper = 7, .size = 10}};
  const PackBlocks blocks = MakeBlocks(items);
  const PackTuning tuning;
  PackFirstFit first_fit(blocks, 1, 10, 10, 0, tuning);
  PackLayout layout;
  first_fit.TryRules(layout);
  EXPECT_EQ(layout.height_bytes, 10);
}

TEST(PackFirstFit, UsesTheSpaceBelowFixedBlocks) {
  const std::vector<PackItem> items = {
      {.lower = 0, .upper = 2, .size = 3, .fixed_offset = 8},
      {.lower = 0, .upper = 2, .size = 8}};
  const PackBlocks blocks = MakeBlocks(items);
  const PackTuning tuning;
  PackFirstFit first_fit(blocks, 1, 11, 11, 0, tuning);
  PackLayout layout;
  first_fit.TryRules(layout);
  EXPECT_EQ(layout.offsets, std::vector<int64_t>({8, 0}));
  EXPECT_EQ(layout.height_bytes, 11);
}

}  // namespace
}  // namespace loadline::planner
