// Joins blocks that together fill a rectangle. For pack.cc and its tests.
#ifndef LOADLINE_PLANNER_PACK_PACK_JOIN_H_
#define LOADLINE_PLANNER_PACK_PACK_JOIN_H_

#include <cstdint>
#include <vector>

#include "planner/pack/pack_parts.h"

namespace loadline::planner {

struct PackJoined {
  struct Part {
    int block = 0;      // of `blocks`
    int64_t above = 0;  // bytes from the bottom of that block
  };

  PackBlocks blocks;        // without items
  std::vector<Part> parts;  // by block that was joined

  // The same layout for the blocks before they were joined, `apart`.
  PackLayout Split(const PackBlocks& apart, const PackLayout& layout) const;
};

// Joins pairs of free blocks until none is left that matches: two of the same
// life, one on top of the other; two of the same padded size of which one
// starts where the other ends, if no third one of that size does. Every layout
// of the result is a layout of `apart` (see Split), so none is lower than the
// lowest of `apart`; the lowest one may be higher.
PackJoined JoinBlocks(const PackBlocks& apart, const PackTuning& tuning = {});

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_PACK_PACK_JOIN_H_
