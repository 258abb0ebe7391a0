// Blocks with holes go to the bottom, where lowest floor can use the holes.
#include <vector>

#include "gtest/gtest.h"
#include "tests/planner/pack/pack_layouts.h"

namespace loadline::planner {
namespace {

// Alive all the time (20 bytes), away over [2, 8) (10), within the hole (10).
std::vector<PackItem> HoledItems() {
  return {{.lower = 0, .upper = 10, .size = 20},
          {.lower = 0, .upper = 2, .size = 10, .group = 0},
          {.lower = 8, .upper = 10, .size = 10, .group = 0},
          {.lower = 3, .upper = 7, .size = 10}};
}

TEST(StackAround, FixesResidentsAndThenBlocksWithHoles) {
  const PackBlocks blocks = MakeBlocks(HoledItems());
  const auto stacked = StackAround(blocks);
  ASSERT_TRUE(stacked.has_value());
  EXPECT_EQ(stacked->blocks[0].fixed, 0);
  EXPECT_EQ(stacked->blocks[1].fixed, 20);
  EXPECT_EQ(stacked->blocks[2].fixed, -1);
  EXPECT_FALSE(stacked->plain);
}

TEST(StackAround, LetsLowestFloorUseTheHoles) {
  const std::vector<PackItem> items = HoledItems();
  const PackBlocks blocks = MakeBlocks(items);
  EXPECT_EQ(LowestFloor(blocks).LayOut({1, 1, 1}).height_bytes, 40);
  const PackLayout layout = LowestFloor(*StackAround(blocks)).LayOut({1, 1, 1});
  ExpectValid(items, blocks, layout);
  EXPECT_EQ(layout.height_bytes, 30);
}

TEST(StackAround, PutsTheLongestHoleOnTop) {
  // Two holes, [2, 8) and [4, 6): only if the longer one is on top is its
  // valley open.
  const std::vector<PackItem> items = {
      {.lower = 0, .upper = 2, .size = 10, .group = 0},
      {.lower = 8, .upper = 10, .size = 10, .group = 0},
      {.lower = 0, .upper = 4, .size = 10, .group = 1},
      {.lower = 6, .upper = 10, .size = 10, .group = 1},
      {.lower = 2, .upper = 8, .size = 10}};
  const auto stacked = StackAround(MakeBlocks(items));
  ASSERT_TRUE(stacked.has_value());
  EXPECT_EQ(stacked->blocks[0].fixed, 10);
  EXPECT_EQ(stacked->blocks[1].fixed, 0);
}

TEST(StackAround, LeavesBlocksWithoutHolesOrWithGivenOffsets) {
  EXPECT_FALSE(StackAround(MakeBlocks(PlainItems(1, 5))).has_value());
  std::vector<PackItem> items = HoledItems();
  items[3].fixed_offset = 50;
  EXPECT_FALSE(StackAround(MakeBlocks(items)).has_value());
}

}  // namespace
}  // namespace loadline::planner
