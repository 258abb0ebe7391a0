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

}  // namespace loadline::planner

#endif  // LOADLINE_TESTS_PLANNER_PACK_CUT_ITEMS_H_
