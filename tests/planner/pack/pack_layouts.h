// Random blocks and a plain check of layouts, for tests of the packer's parts.
#ifndef LOADLINE_TESTS_PLANNER_PACK_PACK_LAYOUTS_H_
#define LOADLINE_TESTS_PLANNER_PACK_PACK_LAYOUTS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "planner/pack/pack_parts.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {

// Items without groups or fixed offsets.
inline std::vector<PackItem> PlainItems(uint64_t seed, int count) {
  TestRandom random(seed);
  std::vector<PackItem> items;
  for (int i = 0; i < count; ++i) {
    PackItem item;
    item.id = i;
    item.lower = random.In(0, count);
    item.upper = random.In(item.lower + 1, count + 5);
    item.size = random.In(1, 30);
    items.push_back(item);
  }
  return items;
}

inline PackBlocks MakeBlocks(const std::vector<PackItem>& items,
                             int64_t alignment = 1) {
  auto blocks = MakePackBlocks(items, alignment);
  EXPECT_TRUE(blocks.ok()) << blocks.status();
  return *std::move(blocks);
}

// Items that are alive together share no byte, and the height is the highest
// end.
inline void ExpectValid(const std::vector<PackItem>& items,
                        const PackBlocks& blocks, const PackLayout& layout) {
  int64_t height = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const int b = blocks.block_of_item[i];
    if (b < 0) continue;
    height = std::max(height, layout.offsets[b] + items[i].size);
    for (size_t j = 0; j < i; ++j) {
      const int other = blocks.block_of_item[j];
      if (other < 0 || other == b) continue;
      const bool together =
          items[i].lower < items[j].upper && items[j].lower < items[i].upper;
      const bool share =
          layout.offsets[b] < layout.offsets[other] + items[j].size &&
          layout.offsets[other] < layout.offsets[b] + items[i].size;
      EXPECT_FALSE(together && share) << "items " << i << " and " << j;
    }
  }
  EXPECT_EQ(layout.height_bytes, height);
}

}  // namespace loadline::planner

#endif  // LOADLINE_TESTS_PLANNER_PACK_PACK_LAYOUTS_H_
