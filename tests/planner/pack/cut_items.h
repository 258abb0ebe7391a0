// Blocks cut into smaller ones, of which a layout without holes is known: the
// one they were cut from.
#ifndef LOADLINE_TESTS_PLANNER_PACK_CUT_ITEMS_H_
#define LOADLINE_TESTS_PLANNER_PACK_CUT_ITEMS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/pack/pack.h"

namespace loadline::planner {

// Cuts one of the items after the other in two, along time or bytes, until
// there are `count`. Nothing shorter than `least_extent` (at least 2) is cut.
// below(n) is uniform in [0, n).
template <typename Below>
void CutItems(size_t count, int64_t least_extent, Below below,
              std::vector<PackItem>& items) {
  while (items.size() < count) {
    PackItem& item = items[below(static_cast<int64_t>(items.size()))];
    const bool by_time = below(2) == 0;
    const int64_t extent = by_time ? item.upper - item.lower : item.size;
    if (extent < least_extent) continue;
    const int64_t cut = 1 + below(extent - 1);
    PackItem rest = item;
    if (by_time) {
      item.upper = rest.lower = item.lower + cut;
    } else {
      item.size = cut;
      rest.size -= cut;
    }
    items.push_back(rest);
  }
}

// Cuts items into five, four around one in the middle, until there are at least
// `count`: no cut goes through the whole of an item.
template <typename Below>
void CutPinwheels(size_t count, Below below, std::vector<PackItem>& items) {
  while (items.size() < count) {
    const size_t at = below(static_cast<int64_t>(items.size()));
    const PackItem whole = items[at];
    const int64_t life = whole.upper - whole.lower;
    if (life < 3 || whole.size < 3) continue;
    const int64_t a = 1 + below(life - 2), b = a + 1 + below(life - a - 1);
    const int64_t low = 1 + below(whole.size - 2);
    const int64_t high = low + 1 + below(whole.size - low - 1);
    const auto part = [&](int64_t from, int64_t to, int64_t bytes) {
      PackItem item = whole;
      item.lower = whole.lower + from;
      item.upper = whole.lower + to;
      item.size = bytes;
      return item;
    };
    items[at] = part(0, b, low);                        // bottom
    items.push_back(part(b, life, high));               // right
    items.push_back(part(a, life, whole.size - high));  // top
    items.push_back(part(0, a, whole.size - low));      // left
    items.push_back(part(a, b, high - low));            // middle
  }
}

}  // namespace loadline::planner

#endif  // LOADLINE_TESTS_PLANNER_PACK_CUT_ITEMS_H_
