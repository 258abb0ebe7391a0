// The most bytes alive at one position, by one sweep over starts and ends.
// Tested in pack_bound_test.cc.
#include <algorithm>
#include <utility>
#include <vector>

#include "planner/base/align.h"
#include "planner/pack/pack.h"

namespace loadline::planner {
namespace {

int64_t MostAlive(const std::vector<PackItem>& items, int64_t alignment) {
  std::vector<std::pair<int64_t, int64_t>> changes;
  std::vector<const PackItem*> grouped;
  const auto add = [&](int64_t lower, const PackItem& item) {
    if (item.upper <= lower) return;
    const int64_t bytes = AlignUp(item.size, alignment);
    changes.emplace_back(lower, bytes);
    changes.emplace_back(item.upper, -bytes);
  };
  for (const PackItem& item : items) {
    if (item.size <= 0 || item.upper <= item.lower) continue;
    if (item.group >= 0) {
      grouped.push_back(&item);
    } else {
      add(item.lower, item);
    }
  }
  // At each position one item of a group counts: the first that reaches it.
  std::sort(
      grouped.begin(), grouped.end(), [](const PackItem* a, const PackItem* b) {
        return std::pair(a->group, a->lower) < std::pair(b->group, b->lower);
      });
  int64_t group = -1, end = 0;
  for (const PackItem* item : grouped) {
    if (item->group != group) {
      group = item->group;
      end = item->lower;
    }
    add(std::max(end, item->lower), *item);
    end = std::max(end, item->upper);
  }
  std::sort(changes.begin(), changes.end());  // ends before starts
  int64_t alive = 0, most = 0;
  for (const auto& [position, change] : changes) {
    alive += change;
    most = std::max(most, alive);
  }
  return most;
}

}  // namespace

int64_t PackLowerBound(const std::vector<PackItem>& items,
                       int64_t alignment_bytes) {
  const int64_t bytes = MostAlive(items, 1);
  if (alignment_bytes <= 1) return bytes;
  // Only the topmost item need not be padded.
  int64_t padding = 0;
  for (const PackItem& item : items) {
    padding =
        std::max(padding, AlignUp(item.size, alignment_bytes) - item.size);
  }
  return std::max(bytes, MostAlive(items, alignment_bytes) - padding);
}

}  // namespace loadline::planner
