// What the packer proves, against the true optimum of small dense inputs, many
// of which cannot be packed as low as the most bytes alive at one position.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "planner/pack/pack.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

// Depth first over the orders in which offsets do not fall, each item as low
// as what is placed allows: some order gives an optimal layout. Given up where
// what is left at a position cannot end below the best.
class BruteForce {
 public:
  explicit BruteForce(const std::vector<PackItem>& items)
      : items_(items),
        bound_(PackLowerBound(items)),
        offset_(items.size(), -1) {
    int64_t end = 0;
    for (const PackItem& item : items) end = std::max(end, item.upper);
    top_.assign(end, 0);
    left_.assign(end, 0);
    for (const PackItem& item : items) Add(left_, item, item.size);
    LayOut(0, 0);
  }
  int64_t best() const { return best_; }

 private:
  static void Add(std::vector<int64_t>& at, const PackItem& item,
                  int64_t bytes) {
    for (int64_t p = item.lower; p < item.upper; ++p) at[p] += bytes;
  }

  void LayOut(size_t placed, int64_t last) {
    if (best_ == bound_) return;
    for (size_t p = 0; p < top_.size(); ++p) {
      if (left_[p] > 0 && std::max(top_[p], last) + left_[p] >= best_) return;
    }
    if (placed == items_.size()) {
      const int64_t height = *std::max_element(top_.begin(), top_.end());
      best_ = std::min(best_, height);
      return;
    }
    for (size_t i = 0; i < items_.size(); ++i) {
      if (offset_[i] >= 0) continue;
      const PackItem& item = items_[i];
      const int64_t at = *std::max_element(top_.begin() + item.lower,
                                           top_.begin() + item.upper);
      if (at < last) continue;
      const std::vector<int64_t> before = top_;
      offset_[i] = at;
      std::fill(top_.begin() + item.lower, top_.begin() + item.upper,
                at + item.size);
      Add(left_, item, -item.size);
      LayOut(placed + 1, at);
      Add(left_, item, item.size);
      top_ = before;
      offset_[i] = -1;
    }
  }

  const std::vector<PackItem>& items_;
  const int64_t bound_;
  std::vector<int64_t> offset_;
  std::vector<int64_t> top_, left_;  // by position: highest end, bytes to come
  int64_t best_ = INT64_MAX;
};

// The same bytes are alive at every position: what ends somewhere is replaced
// by other sizes of the same sum, so that a layout at the bound has no hole;
// in every other case some items then shrink a little.
std::vector<PackItem> DenseItems(uint64_t seed) {
  TestRandom random(seed);
  std::vector<PackItem> items;
  const size_t count = random.In(11, 12);
  int64_t freed = random.In(20, 60);
  for (int64_t position = 0;; ++position) {
    while (freed > 0) {
      const bool rest = items.size() + 1 >= count || random.OneIn(3);
      const int64_t size = rest ? freed : random.In(1, freed);
      items.push_back({static_cast<int64_t>(items.size()), position, -1, size});
      freed -= size;
    }
    for (PackItem& item : items) {
      if (item.upper < 0 && (items.size() >= count || random.OneIn(2))) {
        item.upper = position + 1;
        freed += item.size;
      }
    }
    if (items.size() >= count) break;
  }
  for (PackItem& item : items) {
    if (seed % 2 == 0 && item.size > 3 && random.OneIn(4)) {
      item.size -= random.In(1, 3);
    }
  }
  return items;
}

TEST(PackExact, ProvesNoMoreThanTheOptimum) {
  int above_load = 0;
  int proven = 0;
  for (uint64_t seed = 1; seed <= 4000; ++seed) {
    const std::vector<PackItem> items = DenseItems(seed);
    const int64_t best = BruteForce(items).best();
    const int64_t load = PackLowerBound(items);
    above_load += best > load;
    PackReport report;
    EXPECT_FALSE(Pack(items,
                      {.capacity_bytes = load - 1,
                       .work_limit = 30'000'000,
                       .seed = seed},
                      &report)
                     .ok());
    EXPECT_LE(report.lower_bound_bytes, best) << seed;
    EXPECT_EQ(report.height_bytes, best) << seed;
    proven += best > load && report.lower_bound_bytes == best;
  }
  EXPECT_GT(above_load, 9);
  EXPECT_EQ(proven, above_load);
}

}  // namespace
}  // namespace loadline::planner
