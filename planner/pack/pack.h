// Offsets for buffers whose lifetimes are known: items that are alive at one
// position together may not share bytes. (Dynamic storage allocation:
// NP-hard; here greedy rules, then an exact search with restarts.)
//
// Example:
//   auto offsets = Pack({{0, 0, 2, 64}, {1, 1, 3, 64}, {2, 2, 4, 64}},
//                       {.capacity_bytes = 128});
//   // {0, 64, 0}
#ifndef LOADLINE_PLANNER_PACK_PACK_H_
#define LOADLINE_PLANNER_PACK_PACK_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/base/stop.h"
#include "planner/pack/pack_tuning.h"

namespace loadline::planner {

struct PackItem {
  int64_t id = 0;
  int64_t lower = 0;  // alive over [lower, upper)
  int64_t upper = 0;
  int64_t size = 0;           // bytes
  int64_t fixed_offset = -1;  // -1: free
  // Items of one group (any number >= 0) share one offset and never conflict
  // with each other; -1: alone.
  int64_t group = -1;
};

struct PackOptions {
  int64_t capacity_bytes = 0;
  int64_t alignment_bytes = 1;
  // Elementary steps after the first greedy layouts, once for joining, squeaky
  // wheel and exact search together, and once more each for tilings and for
  // first fit. A pair of blocks looked at counts 1; a node of the search counts
  // 1/16 of the positions at which items start or end, at least 16.
  int64_t work_limit = 100'000'000;
  uint64_t seed = 0;
  Stop stop;  // ends it with the best layout so far; one is always made
  PackTuning tuning;
};

// The best layout found, whether or not it fits.
struct PackReport {
  int64_t height_bytes = 0;  // highest end of any item
  // No layout is lower: most bytes alive at one position, or more where the
  // exact search has proven it.
  int64_t lower_bound_bytes = 0;
  // The window that is too tall: the longest stretch around the highest item
  // where the layout ends above the capacity (empty if it fits), and the items
  // alive in it, by index.
  int64_t tallest_lower = 0;
  int64_t tallest_upper = 0;
  std::vector<int> tallest_items;
  std::vector<int64_t> offsets;  // by item
};

// One offset per item, in the items' order: multiples of the alignment with
// offset + size <= capacity. Errors: InvalidArgument (negative sizes, upper <
// lower, fixed offsets that collide, sums above 2^63 - 1), ResourceExhausted
// (no layout found; it says how high the best one was). Deterministic in items,
// options and seed.
absl::StatusOr<std::vector<int64_t>> Pack(const std::vector<PackItem>& items,
                                          const PackOptions& options,
                                          PackReport* report = nullptr);

// Most bytes alive at one position, sizes rounded up to the alignment except
// for the topmost: no layout is lower. Items of a group count once.
int64_t PackLowerBound(const std::vector<PackItem>& items,
                       int64_t alignment_bytes = 1);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_PACK_PACK_H_
