// From items to blocks and sections.
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "planner/pack/pack_parts.h"

namespace loadline::planner {
namespace {

PackBlocks Blocks(const std::vector<PackItem>& items, int64_t alignment = 1) {
  auto blocks = MakePackBlocks(items, alignment);
  EXPECT_TRUE(blocks.ok()) << blocks.status();
  return *std::move(blocks);
}

TEST(MakePackBlocks, MakesASectionBetweenTwoChanges) {
  const PackBlocks blocks = Blocks({{.lower = 0, .upper = 10, .size = 3},
                                    {.lower = 4, .upper = 20, .size = 5}});
  EXPECT_EQ(blocks.sections, 3);
  EXPECT_EQ(blocks.position, std::vector<int64_t>({0, 4, 10, 20}));
  EXPECT_EQ(blocks.item_sections[1], std::make_pair(1, 3));
  EXPECT_EQ(blocks.blocks[1].life, 16);
  EXPECT_TRUE(blocks.plain);
}

TEST(MakePackBlocks, JoinsTheItemsOfAGroup) {
  const PackBlocks blocks =
      Blocks({{.lower = 0, .upper = 2, .size = 3, .group = 7},
              {.lower = 2, .upper = 5, .size = 3, .group = 7},
              {.lower = 1, .upper = 4, .size = 2}});
  ASSERT_EQ(blocks.blocks.size(), 2u);
  EXPECT_EQ(blocks.block_of_item, std::vector<int>({0, 0, 1}));
  EXPECT_EQ(blocks.blocks[0].items, 2);
  EXPECT_EQ(blocks.blocks[0].life, 5);
  EXPECT_TRUE(blocks.plain);
}

TEST(MakePackBlocks, IsPlainOnlyIfProofsOfBlocksHoldForItems) {
  // A gap in the life, different sizes, padding, a fixed offset.
  EXPECT_FALSE(Blocks({{.lower = 0, .upper = 2, .size = 3, .group = 7},
                       {.lower = 3, .upper = 5, .size = 3, .group = 7}})
                   .plain);
  EXPECT_FALSE(Blocks({{.lower = 0, .upper = 2, .size = 3, .group = 7},
                       {.lower = 2, .upper = 5, .size = 4, .group = 7}})
                   .plain);
  EXPECT_FALSE(Blocks({{.lower = 0, .upper = 2, .size = 3}}, 2).plain);
  EXPECT_FALSE(
      Blocks({{.lower = 0, .upper = 2, .size = 3, .fixed_offset = 0}}).plain);
}

TEST(MakePackBlocks, LeavesOutItemsWithoutBytesOrLife) {
  const PackBlocks blocks = Blocks({{.lower = 0, .upper = 2, .size = 0},
                                    {.lower = 1, .upper = 1, .size = 3}});
  EXPECT_TRUE(blocks.blocks.empty());
  EXPECT_EQ(blocks.block_of_item, std::vector<int>({-1, -1}));
  EXPECT_EQ(blocks.sections, 0);
}

TEST(MakePackBlocks, LaysABaseUnderFreeBlocks) {
  const PackBlocks blocks =
      Blocks({{.lower = 0, .upper = 2, .size = 3, .fixed_offset = 8},
              {.lower = 1, .upper = 4, .size = 2}},
             4);
  EXPECT_EQ(blocks.base, std::vector<int64_t>({12, 12, 0}));
}

TEST(MakePackBlocks, RefusesFixedItemsThatCollide) {
  EXPECT_FALSE(
      MakePackBlocks({{.lower = 0, .upper = 2, .size = 3, .fixed_offset = 0},
                      {.lower = 1, .upper = 4, .size = 2, .fixed_offset = 2}},
                     1)
          .ok());
  EXPECT_TRUE(
      MakePackBlocks({{.lower = 0, .upper = 2, .size = 3, .fixed_offset = 0},
                      {.lower = 2, .upper = 4, .size = 2, .fixed_offset = 2}},
                     1)
          .ok());
}

}  // namespace
}  // namespace loadline::planner
