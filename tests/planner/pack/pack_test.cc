// Layouts against a naive check, the lower bound, and the best of all orders
// on small inputs.
#include "planner/pack/pack.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "planner/pack/pack_first_fit.h"
#include "planner/pack/pack_parts.h"
#include "tests/planner/pack/cut_items.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

std::vector<PackItem> RandomItems(TestRandom& random, int count) {
  std::vector<PackItem> items;
  for (int i = 0; i < count; ++i) {
    PackItem item;
    item.id = i;
    item.lower = random.In(0, 2 * count);
    item.upper = item.lower + random.In(1, count);
    item.size = random.OneIn(9) ? 0 : random.In(1, 100);
    items.push_back(item);
  }
  return items;
}

void ExpectLayout(const std::vector<PackItem>& items,
                  const std::vector<int64_t>& offsets,
                  const PackOptions& options) {
  ASSERT_EQ(offsets.size(), items.size());
  for (size_t a = 0; a < items.size(); ++a) {
    EXPECT_EQ(offsets[a] % options.alignment_bytes, 0);
    EXPECT_GE(offsets[a], 0);
    EXPECT_LE(offsets[a] + items[a].size, options.capacity_bytes);
    for (size_t b = 0; b < a; ++b) {
      const bool one_group =
          items[a].group >= 0 && items[a].group == items[b].group;
      if (one_group) {
        EXPECT_EQ(offsets[a], offsets[b]);
        continue;
      }
      const bool together =
          items[a].lower < items[b].upper && items[b].lower < items[a].upper;
      const bool overlap = offsets[a] < offsets[b] + items[b].size &&
                           offsets[b] < offsets[a] + items[a].size;
      EXPECT_FALSE(together && overlap && items[a].size > 0 &&
                   items[b].size > 0)
          << a << " and " << b;
    }
  }
}

// First fit over every order: what the best order reaches.
int64_t BestOverAllOrders(const std::vector<PackItem>& items) {
  std::vector<int> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  int64_t best = INT64_MAX;
  do {
    std::vector<int64_t> offset(items.size(), -1);
    int64_t height = 0;
    for (int i : order) {
      int64_t at = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t j = 0; j < items.size(); ++j) {
          if (offset[j] < 0 || items[j].lower >= items[i].upper ||
              items[i].lower >= items[j].upper) {
            continue;
          }
          if (at < offset[j] + items[j].size &&
              offset[j] < at + items[i].size) {
            at = offset[j] + items[j].size;
            moved = true;
          }
        }
      }
      offset[i] = at;
      height = std::max(height, at + items[i].size);
    }
    best = std::min(best, height);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(Pack, ReachesTheBestOfAllOrdersOnSmallInputs) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    TestRandom random(seed);
    std::vector<PackItem> items = RandomItems(random, 7);
    for (PackItem& item : items) item.size += 1;
    PackOptions options;
    options.capacity_bytes = BestOverAllOrders(items);
    EXPECT_GE(options.capacity_bytes, PackLowerBound(items));
    const auto offsets = Pack(items, options);
    ASSERT_TRUE(offsets.ok()) << seed << ": " << offsets.status();
    ExpectLayout(items, *offsets, options);
  }
}

TEST(Pack, AgreesWithAllOrdersByTheThousand) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    TestRandom random(seed);
    std::vector<PackItem> items = RandomItems(random, 6);
    for (PackItem& item : items) item.size = item.size % 9 + 1;
    const int64_t best = BestOverAllOrders(items);
    PackOptions options;
    options.capacity_bytes = best - 1;
    PackReport report;
    EXPECT_FALSE(Pack(items, options, &report).ok()) << seed;
    EXPECT_EQ(report.height_bytes, best) << seed;
    EXPECT_EQ(report.lower_bound_bytes, best) << seed;
    EXPECT_LT(report.tallest_lower, report.tallest_upper) << seed;
    options.capacity_bytes = best;
    const auto offsets = Pack(items, options);
    ASSERT_TRUE(offsets.ok()) << seed << ": " << offsets.status();
    ExpectLayout(items, *offsets, options);
  }
}

TEST(Pack, LaysOutRandomItemsNearTheLowerBound) {
  double worst = 1;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    TestRandom random(seed);
    std::vector<PackItem> items = RandomItems(random, 80);
    PackOptions options;
    options.alignment_bytes = seed % 2 == 0 ? 1 : 16;
    options.capacity_bytes = PackLowerBound(items);
    options.work_limit = 300'000;
    PackReport report;
    if (!Pack(items, options, &report).ok()) {
      options.capacity_bytes = report.height_bytes;
    }
    ExpectLayout(items, report.offsets, options);
    if (options.alignment_bytes == 1) {
      worst =
          std::max(worst, static_cast<double>(report.height_bytes) /
                              static_cast<double>(report.lower_bound_bytes));
    }
  }
  EXPECT_LT(worst, 1.1);
}

TEST(Pack, GroupsShareAnOffsetAndFixedOffsetsStay) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    TestRandom random(seed);
    std::vector<PackItem> items = RandomItems(random, 20);
    // Chains: the next item of a group starts where the last one ends.
    for (size_t i = 0; i + 1 < items.size(); i += 4) {
      items[i + 1].lower = items[i].upper;
      items[i + 1].upper = items[i + 1].lower + 5;
      items[i].group = items[i + 1].group = static_cast<int64_t>(i);
    }
    items[3].fixed_offset = 640;
    items[3].size = 10;
    PackOptions options;
    options.capacity_bytes = 100'000;
    options.alignment_bytes = 64;
    const auto offsets = Pack(items, options);
    ASSERT_TRUE(offsets.ok()) << offsets.status();
    ExpectLayout(items, *offsets, options);
    EXPECT_EQ((*offsets)[3], 640);
  }
}

// Whatever else is tried: gaps in lives and fixed offsets need first fit.
TEST(Pack, IsNeverTallerThanFirstFitAlone) {
  int lower = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    TestRandom random(seed);
    std::vector<PackItem> items = RandomItems(random, 40);
    for (size_t i = 0; i + 1 < items.size(); i += 5) {
      items[i + 1].lower = items[i].upper + random.In(0, 9);
      items[i + 1].upper = items[i + 1].lower + 5;
      items[i].group = items[i + 1].group = static_cast<int64_t>(i);
    }
    items[3].fixed_offset = 64;
    PackOptions options;
    options.alignment_bytes = seed % 2 == 0 ? 1 : 16;
    options.capacity_bytes = PackLowerBound(items, options.alignment_bytes);
    options.work_limit = 50'000;
    options.seed = seed;
    PackReport report;
    (void)Pack(items, options, &report);
    const auto blocks = MakePackBlocks(items, options.alignment_bytes);
    ASSERT_TRUE(blocks.ok()) << blocks.status();
    PackFirstFit first_fit(*blocks, options.alignment_bytes,
                           options.capacity_bytes, options.capacity_bytes, seed,
                           options.tuning);
    PackLayout alone;
    PackWork work{options.work_limit};
    first_fit.TryRules(alone);
    first_fit.Improve(work, alone);
    EXPECT_LE(report.height_bytes, alone.height_bytes) << seed;
    lower += report.height_bytes < alone.height_bytes;
    options.capacity_bytes = report.height_bytes;
    ExpectLayout(items, report.offsets, options);
  }
  EXPECT_GT(lower, 0);
}

// A valley cut at random into blocks, between staircases of blocks that are
// alive at both ends: the optimum is the staircases' height.
std::vector<PackItem> ValleyItems(TestRandom& random) {
  constexpr int64_t kStep = 1000, kEnd = 1000;
  std::vector<PackItem> items, valley;
  for (int64_t step = 0; step < 12; ++step) {
    const int64_t lower = 10 + 30 * step + random.In(0, 20);
    const int64_t upper = kEnd - 10 - 30 * step - random.In(0, 20);
    items.push_back({.lower = 0, .upper = lower, .size = kStep, .group = step});
    items.push_back(
        {.lower = upper, .upper = kEnd, .size = kStep, .group = step});
    valley.push_back({.lower = lower, .upper = upper, .size = kStep});
  }
  CutItems(
      150, 20, [&](int64_t n) { return random.In(0, n - 1); }, valley);
  items.insert(items.end(), valley.begin(), valley.end());
  for (size_t i = items.size(); i > 1; --i) {
    std::swap(items[i - 1], items[random.In(0, static_cast<int64_t>(i) - 1)]);
  }
  return items;
}

TEST(Pack, UsesTheBytesOfWhatLeavesAndComesBack) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    TestRandom random(seed);
    const std::vector<PackItem> items = ValleyItems(random);
    PackOptions options;
    options.capacity_bytes = PackLowerBound(items);
    options.work_limit = 300'000;
    const auto offsets = Pack(items, options);
    ASSERT_TRUE(offsets.ok()) << seed << ": " << offsets.status();
    ExpectLayout(items, *offsets, options);
  }
}

TEST(Pack, SaysHowHighTheBestLayoutWas) {
  PackReport report;
  const auto offsets =
      Pack({{0, 0, 2, 64}, {1, 1, 3, 64}}, {.capacity_bytes = 100}, &report);
  EXPECT_EQ(offsets.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(report.height_bytes, 128);
  EXPECT_EQ(report.lower_bound_bytes, 128);
}

TEST(Pack, HoldsSumsUpToTheLimitOfInt64) {
  constexpr int64_t kHalf = int64_t{1} << 62;
  PackOptions options;
  options.capacity_bytes = INT64_MAX;
  options.alignment_bytes = 1;
  const auto offsets = Pack({{0, 0, 2, kHalf}, {1, 1, 3, kHalf - 2}}, options);
  ASSERT_TRUE(offsets.ok()) << offsets.status();
  EXPECT_EQ(std::max((*offsets)[0] + kHalf, (*offsets)[1] + (kHalf - 2)),
            INT64_MAX - 1);
  EXPECT_EQ(Pack({{0, 0, 2, kHalf}, {1, 1, 3, kHalf}}, options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Pack, RejectsMalformedItems) {
  EXPECT_EQ(Pack({{0, 2, 1, 64}}, {.capacity_bytes = 100}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Pack({{0, 0, 2, 64, 0}, {1, 1, 3, 64, 32}}, {.capacity_bytes = 100})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace loadline::planner
