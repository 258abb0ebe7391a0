// The greedy rule, against one that computes every block's lowest offset.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "tests/planner/pack/pack_layouts.h"

namespace loadline::planner {
namespace {

// Places next the block with the lowest legal offset on the skyline, then the
// highest key, then the lowest index.
PackLayout Plain(const PackBlocks& blocks, const std::vector<double>& keys) {
  std::vector<int64_t> height = blocks.base;
  std::vector<bool> placed(blocks.blocks.size(), false);
  PackLayout layout;
  layout.height_bytes = 0;
  layout.offsets.assign(blocks.blocks.size(), 0);
  for (size_t round = 0; round < blocks.blocks.size(); ++round) {
    int best = -1;
    int64_t best_offset = 0;
    for (size_t b = 0; b < blocks.blocks.size(); ++b) {
      if (placed[b]) continue;
      const PackBlock& block = blocks.blocks[b];
      const int64_t offset = *std::max_element(height.begin() + block.lower,
                                               height.begin() + block.upper);
      if (best < 0 || offset < best_offset ||
          (offset == best_offset && keys[b] > keys[best])) {
        best = static_cast<int>(b);
        best_offset = offset;
      }
    }
    const PackBlock& block = blocks.blocks[best];
    placed[best] = true;
    layout.offsets[best] = best_offset;
    std::fill(height.begin() + block.lower, height.begin() + block.upper,
              best_offset + block.padded);
    layout.height_bytes =
        std::max(layout.height_bytes, best_offset + block.size);
  }
  return layout;
}

TEST(LowestFloor, PlacesTheLowestBlockNext) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const std::vector<PackItem> items = PlainItems(seed, 40);
    const PackBlocks blocks = MakeBlocks(items);
    std::vector<double> keys;
    TestRandom random(seed);
    for (size_t b = 0; b < blocks.blocks.size(); ++b) {
      keys.push_back(static_cast<double>(random.In(0, 9)));
    }
    const PackLayout layout = LowestFloor(blocks).LayOut(keys);
    ExpectValid(items, blocks, layout);
    EXPECT_EQ(layout.offsets, Plain(blocks, keys).offsets) << seed;
    EXPECT_GE(layout.height_bytes, PackLowerBound(items));
  }
}

TEST(LowestFloor, PrefersHighKeysOnTheSameFloor) {
  const std::vector<PackItem> items = {{.lower = 0, .upper = 2, .size = 3},
                                       {.lower = 0, .upper = 2, .size = 5}};
  const PackBlocks blocks = MakeBlocks(items);
  LowestFloor packer(blocks);
  EXPECT_EQ(packer.LayOut({1, 2}).offsets, std::vector<int64_t>({5, 0}));
  EXPECT_EQ(packer.LayOut({2, 1}).offsets, std::vector<int64_t>({0, 3}));
}

TEST(LowestFloor, RestsOnFixedBlocks) {
  const std::vector<PackItem> items = {
      {.lower = 0, .upper = 2, .size = 3, .fixed_offset = 4},
      {.lower = 1, .upper = 3, .size = 5},
      {.lower = 2, .upper = 3, .size = 1}};
  const PackBlocks blocks = MakeBlocks(items);
  const PackLayout layout = LowestFloor(blocks).LayOut({0, 1, 1});
  EXPECT_EQ(layout.offsets, std::vector<int64_t>({4, 7, 0}));
  EXPECT_EQ(layout.height_bytes, 12);
}

}  // namespace
}  // namespace loadline::planner
