// Blocks joined to rectangles: what was cut from one comes together again, and
// a layout of joined blocks is one of the blocks apart.
#include "planner/pack/pack_join.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "planner/pack/pack.h"
#include "tests/planner/pack/cut_items.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

// A rectangle of 2^40 bytes cut along time or bytes, every `dropped`-th piece
// left out (0: none).
std::vector<PackItem> Pieces(uint64_t seed, size_t count, int dropped) {
  TestRandom random(seed);
  std::vector<PackItem> items = {{.lower = 0,
                                  .upper = static_cast<int64_t>(count) * 4,
                                  .size = int64_t{1} << 40}};
  CutItems(
      count, 2, [&](int64_t n) { return random.In(0, n - 1); }, items);
  std::vector<PackItem> left;
  for (size_t i = 0; i < items.size(); ++i) {
    if (dropped > 0 && i % dropped == 1) continue;
    left.push_back(items[i]);
    left.back().id = static_cast<int64_t>(i);
  }
  return left;
}

PackBlocks BlocksOf(const std::vector<PackItem>& items, int64_t alignment) {
  auto blocks = MakePackBlocks(items, alignment);
  EXPECT_TRUE(blocks.ok()) << blocks.status();
  return *std::move(blocks);
}

TEST(PackJoin, PutsTogetherWhatWasCutFromOneRectangle) {
  int whole = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const PackJoined joined = JoinBlocks(BlocksOf(Pieces(seed, 300, 0), 1));
    EXPECT_LT(joined.blocks.blocks.size(), 60u) << seed;
    whole += joined.blocks.blocks.size() == 1;
  }
  EXPECT_GT(whole, 10);
}

TEST(PackJoin, KeepsWhereFixedBlocksAreAndWhereNot) {
  // Away over [2, 8); nothing else starts or ends at 2 or 8.
  const std::vector<PackItem> items = {
      {.lower = 0, .upper = 2, .size = 10, .group = 0},
      {.lower = 8, .upper = 10, .size = 10, .group = 0},
      {.lower = 3, .upper = 5, .size = 10},
      {.lower = 5, .upper = 7, .size = 10},
      {.lower = 7, .upper = 10, .size = 5}};
  const auto stacked = StackAround(BlocksOf(items, 1));
  ASSERT_TRUE(stacked.has_value());
  const PackBlocks joined = JoinBlocks(*stacked).blocks;
  ASSERT_LT(joined.blocks.size(), stacked->blocks.size());
  for (int s = 0; s < joined.sections; ++s) {
    for (int64_t at = joined.position[s]; at < joined.position[s + 1]; ++at) {
      EXPECT_EQ(joined.base[s], at < 2 || at >= 8 ? 10 : 0) << at;
    }
  }
}

TEST(PackJoin, LeavesLittleWhereSomePiecesAreMissing) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const PackBlocks apart = BlocksOf(Pieces(seed, 300, 10), 1);
    EXPECT_LT(2 * JoinBlocks(apart).blocks.blocks.size(), apart.blocks.size())
        << seed;
  }
}

// Greedy layouts of joined blocks, taken apart: nothing overlaps, fixed blocks
// stay, and no end is above the joined height.
TEST(PackJoin, SplitsToLayoutsOfTheBlocksApart) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    TestRandom random(seed);
    std::vector<PackItem> items;
    for (int i = 0; i < 40; ++i) {
      const int64_t lower = random.In(0, 12);
      items.push_back({.id = i,
                       .lower = lower,
                       .upper = lower + random.In(1, 6),
                       .size = random.In(1, 40)});
    }
    items[3].fixed_offset = 64;
    const PackBlocks apart = BlocksOf(items, seed % 2 == 0 ? 1 : 16);
    const PackJoined joined = JoinBlocks(apart);
    EXPECT_LT(joined.blocks.blocks.size(), apart.blocks.size()) << seed;
    const std::vector<double> keys(joined.blocks.blocks.size(), 0);
    const PackLayout together = LowestFloor(joined.blocks).LayOut(keys);
    const PackLayout split = joined.Split(apart, together);
    EXPECT_LE(split.height_bytes, together.height_bytes) << seed;
    ASSERT_EQ(split.offsets.size(), apart.blocks.size());
    for (size_t a = 0; a < apart.blocks.size(); ++a) {
      const PackBlock& x = apart.blocks[a];
      if (x.fixed >= 0) {
        EXPECT_EQ(split.offsets[a], x.fixed);
      }
      EXPECT_LE(split.offsets[a] + x.size, split.height_bytes);
      for (size_t b = 0; b < a; ++b) {
        const PackBlock& y = apart.blocks[b];
        const bool alive = x.lower < y.upper && y.lower < x.upper;
        const bool overlap = split.offsets[a] < split.offsets[b] + y.size &&
                             split.offsets[b] < split.offsets[a] + x.size;
        EXPECT_FALSE(alive && overlap) << seed << ": " << a << " and " << b;
      }
    }
  }
}

TEST(Pack, FindsTheRectangleThatManyItemsWereCutFrom) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    for (int dropped : {0, 30}) {
      PackOptions options;
      options.capacity_bytes = int64_t{1} << 40;
      options.work_limit = 300'000;
      options.seed = seed;
      found += Pack(Pieces(seed, 1000, dropped), options).ok();
    }
  }
  EXPECT_GE(found, 11);
}

}  // namespace
}  // namespace loadline::planner
