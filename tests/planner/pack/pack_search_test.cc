// The depth-first search: what it finds is valid, what it excludes has no
// layout by any way of packing.
#include "planner/pack/pack_search.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "tests/planner/pack/pack_layouts.h"

namespace loadline::planner {
namespace {

PackLayout LayoutOf(const PackSearch& search, const PackBlocks& blocks) {
  PackLayout layout;
  layout.offsets = search.offsets();
  layout.height_bytes = 0;
  for (size_t b = 0; b < blocks.blocks.size(); ++b) {
    layout.height_bytes = std::max(layout.height_bytes,
                                   layout.offsets[b] + blocks.blocks[b].size);
  }
  return layout;
}

TEST(PackSearch, FindsValidLayoutsAtEveryHeightThatItDoesNotExclude) {
  int excluded = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const std::vector<PackItem> items = PlainItems(seed, 9);
    const PackBlocks blocks = MakeBlocks(items);
    const std::vector<double> keys(blocks.blocks.size(), 0);
    const int64_t load = PackLowerBound(items);
    ExactResult last = ExactResult::kNone;
    for (int64_t capacity = load - 1; last != ExactResult::kFound; ++capacity) {
      PackSearch search(blocks, capacity);
      last = search.Run(keys, 1'000'000, true);
      ASSERT_NE(last, ExactResult::kGaveUp);
      if (last == ExactResult::kNone) {
        ++excluded;
        // No other packer finds one there.
        EXPECT_FALSE(
            Pack(items, {.capacity_bytes = capacity, .work_limit = 100'000})
                .ok())
            << seed;
        continue;
      }
      const PackLayout layout = LayoutOf(search, blocks);
      ExpectValid(items, blocks, layout);
      EXPECT_LE(layout.height_bytes, capacity);
    }
  }
  EXPECT_GE(excluded, 60);  // below the load there is never one
}

TEST(PackSearch, StopsAtItsLimit) {
  const std::vector<PackItem> items = PlainItems(3, 60);
  const PackBlocks blocks = MakeBlocks(items);
  const std::vector<double> keys(blocks.blocks.size(), 0);
  PackSearch search(blocks, PackLowerBound(items));
  if (search.Run(keys, 10, true) == ExactResult::kGaveUp) {
    EXPECT_LE(search.nodes(), 11);
  }
  EXPECT_EQ(search.Run(keys, 0, true), ExactResult::kGaveUp);
}

TEST(SectionSet, MeetsWhatWasAddedAcrossWords) {
  SectionSet set(200);
  set.Add(60, 70);
  EXPECT_TRUE(set.Meets(69, 75));
  EXPECT_FALSE(set.Meets(70, 200));
  SectionSet other(200);
  other.Add(150, 151);
  set.Add(other);
  EXPECT_TRUE(set.Meets(100, 200));
  set.Clear();
  EXPECT_FALSE(set.Meets(0, 200));
}

}  // namespace
}  // namespace loadline::planner
