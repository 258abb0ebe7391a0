// Layouts of blocks that fill a rectangle. For pack.cc and its tests.
#ifndef LOADLINE_PLANNER_PACK_PACK_TILING_H_
#define LOADLINE_PLANNER_PACK_PACK_TILING_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/pack/pack_parts.h"
#include "planner/pack/pq_tree.h"

namespace loadline::planner {

// Free blocks, not too many, of which equally many bytes are alive at every
// section.
bool CanTile(const PackBlocks& blocks, const PackTuning& tuning);

// A layout of such blocks: without holes if the sets of blocks that take each
// other's place are found. nullopt: other blocks, or no work left.
std::optional<PackLayout> PackTiling(const PackBlocks& blocks,
                                     const PackTuning& tuning, PackWork& work);

// The steps of PackTiling.

// Which blocks end and start between sections s - 1 and s.
struct TilingEvents {
  std::vector<int64_t> bytes;  // by block
  std::vector<std::vector<int>> ends, starts;
  int64_t height_bytes = 0;  // alive at every section

  int64_t Bytes(const std::vector<int>& blocks) const;
  // The same with time running backwards.
  void Reverse();
};

// Blocks that end together, in their order, and those that take their place.
struct TilingExchange {
  int event = 0;
  PqTree::Replaced replaced;
  std::vector<int> by;
};

// Offsets of all blocks from the order at the end of time, `last`, and what was
// exchanged before, in the order of time. No two blocks overlap; -1: a block
// that fits nowhere where it ends.
std::vector<int64_t> PlaceBackwards(const TilingEvents& events,
                                    std::vector<TilingExchange>& exchanges,
                                    const std::vector<int>& last,
                                    const PackTuning& tuning, int64_t& work);

// Gives each block whose offset is -1 one: the largest first, if possible below
// `height_bytes` in the place of smaller ones, which then need another.
void FillHoles(const PackBlocks& blocks, int64_t height_bytes,
               const PackTuning& tuning, PackWork& work,
               std::vector<int64_t>& offsets);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_PACK_PACK_TILING_H_
