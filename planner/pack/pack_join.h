// Blocks that fill a rectangle together, as one. For pack.cc and its tests.
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

  // The layout of the blocks that were joined; `apart` are those.
  PackLayout Split(const PackBlocks& apart, const PackLayout& layout) const;
};

// Joins, again and again, two free blocks of the same life, one on top of the
// other, and two of the same padded size of which one starts where the other
// ends, unless there is a third of that size that does. No layout of what comes
// out is lower than the lowest of `apart`; it may be higher.
PackJoined JoinBlocks(const PackBlocks& apart, const PackTuning& tuning = {});

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_PACK_PACK_JOIN_H_
