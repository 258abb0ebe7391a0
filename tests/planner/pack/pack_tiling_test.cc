// Tilings: rectangles cut into blocks are put together again, also where no cut
// goes through the whole of one; whatever comes out is a layout.
#include "planner/pack/pack_tiling.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "tests/planner/pack/cut_items.h"
#include "tests/planner/pack/pack_layouts.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

constexpr int64_t kHeight = int64_t{1} << 40;

std::vector<PackItem> Cut(uint64_t seed, size_t count, int64_t positions,
                          bool pinwheels) {
  TestRandom random(seed);
  std::vector<PackItem> items = {
      {.lower = 0, .upper = positions, .size = kHeight}};
  const auto below = [&](int64_t n) { return random.In(0, n - 1); };
  if (pinwheels) {
    CutPinwheels(count, below, items);
  } else {
    CutItems(count, 2, below, items);
  }
  for (size_t i = 0; i < items.size(); ++i) {
    items[i].id = static_cast<int64_t>(i);
  }
  return items;
}

int64_t TilingHeight(const std::vector<PackItem>& items) {
  const PackBlocks blocks = MakeBlocks(items);
  PackWork work{100'000'000};
  const std::optional<PackLayout> layout = PackTiling(blocks, {}, work);
  if (!layout) return 0;
  ExpectValid(items, blocks, *layout);
  return layout->height_bytes;
}

TEST(PackTiling, PutsTogetherWhatWasCutFromOneRectangle) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    for (bool pinwheels : {false, true}) {
      EXPECT_EQ(TilingHeight(Cut(seed, 400, 40'000, pinwheels)), kHeight)
          << seed << " " << pinwheels;
    }
  }
}

// Few positions: many runs end at once, and not all are told apart.
TEST(PackTiling, NeverOverlapsWhereManyBlocksEndTogether) {
  int whole = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const int64_t height = TilingHeight(Cut(seed, 600, 20, false));
    EXPECT_GE(height, kHeight);
    whole += height == kHeight;
  }
  EXPECT_LT(whole, 20);
}

TEST(PackTiling, TakesOnlyFreeBlocksThatFillARectangle) {
  std::vector<PackItem> items = Cut(1, 20, 1000, false);
  EXPECT_TRUE(CanTile(MakeBlocks(items), {}));
  PackTuning few;
  few.most_tiling_blocks = 19;
  EXPECT_FALSE(CanTile(MakeBlocks(items), few));
  items[3].fixed_offset = 0;
  EXPECT_FALSE(CanTile(MakeBlocks(items), {}));
  items[3].fixed_offset = -1;
  for (PackItem& item : items) {
    if (item.lower > 0) --item.size;
  }
  EXPECT_FALSE(CanTile(MakeBlocks(items), {}));
  EXPECT_FALSE(CanTile(MakeBlocks({}), {}));
}

TEST(PackTiling, EndsWithoutWork) {
  const PackBlocks blocks = MakeBlocks(Cut(1, 300, 60, false));
  PackWork none{0};
  EXPECT_FALSE(PackTiling(blocks, {}, none).has_value());
}

TEST(Pack, IsLowerByTheTilingStage) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const std::vector<PackItem> items = Cut(seed, 1000, 4000, true);
    PackOptions options{.capacity_bytes = kHeight, .work_limit = 10'000'000};
    PackReport with, without;
    (void)Pack(items, options, &with);
    options.tuning.tiling_stage = false;
    (void)Pack(items, options, &without);
    EXPECT_LT(with.height_bytes, without.height_bytes) << seed;
  }
}

// A block of 3 bytes, between blocks at [0, 1) and [2, 4), of 6 bytes: the
// block of 2 moves down.
TEST(FillHoles, MovesSmallerBlocksOutOfTheWay) {
  const std::vector<PackItem> items = {
      {.id = 0, .lower = 0, .upper = 2, .size = 2},
      {.id = 1, .lower = 0, .upper = 2, .size = 3},
      {.id = 2, .lower = 0, .upper = 1, .size = 1}};
  const PackBlocks blocks = MakeBlocks(items);
  PackWork work{1000};
  PackLayout layout{.offsets = {2, -1, 0}};
  FillHoles(blocks, 6, {}, work, layout.offsets);
  layout.height_bytes = 6;
  ExpectValid(items, blocks, layout);
}

}  // namespace
}  // namespace loadline::planner
