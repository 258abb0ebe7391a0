// The parts of the packer, for pack*.cc and their tests only.
#ifndef LOADLINE_PLANNER_PACK_PACK_PARTS_H_
#define LOADLINE_PLANNER_PACK_PACK_PARTS_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/base/stop.h"
#include "planner/pack/pack.h"

namespace loadline::planner {

// Items that share an offset. Time is counted in sections: the stretches
// between two positions at which some item starts or ends.
struct PackBlock {
  int lower = 0, upper = 0;  // sections, gaps between its items included
  int64_t size = 0;          // bytes of its largest item
  int64_t padded = 0;        // rounded up to the alignment
  int64_t life = 0;          // positions from lower to upper
  int64_t alive = 0;         // the lives of its items, summed
  int64_t fixed = -1;        // offset; -1: free
  int items = 0;
};

struct PackBlocks {
  int sections = 0;
  std::vector<int64_t> position;  // where each section starts, and the end
  std::vector<PackBlock> blocks;
  std::vector<int> block_of_item;  // -1: no bytes or no life
  // Sections [first, second) in which the item lives, by item.
  std::vector<std::pair<int, int>> item_sections;
  // End of the highest fixed block, by section.
  std::vector<int64_t> base;
  // Every block is free, without gaps, and a multiple of the alignment: then
  // what the exact search proves of blocks holds for the items.
  bool plain = true;
};

// Errors: InvalidArgument, as Pack says.
absl::StatusOr<PackBlocks> MakePackBlocks(const std::vector<PackItem>& items,
                                          int64_t alignment_bytes);

// The blocks, with those that are alive at both ends but not all the time fixed
// near the bottom, above those alive all the time: lowest floor can then use
// their gaps. Empty if there are no such blocks or some offset is given.
std::optional<PackBlocks> StackAround(const PackBlocks& blocks,
                                      const PackTuning& tuning = {});

struct PackLayout {
  std::vector<int64_t> offsets;  // by block
  int64_t height_bytes = INT64_MAX;
};

struct PackWork {
  int64_t left = 0;
  Stop stop;
  bool Done() const { return left <= 0 || stop.Now(); }
};

// Greedy: places next the block with the lowest legal offset on the skyline;
// among several the one with the highest key. Fixed blocks count as solid down
// to offset 0; blocks count as alive in their gaps. O(n sqrt n) at worst, near
// O(n log n) in practice.
class LowestFloor {
 public:
  explicit LowestFloor(const PackBlocks& blocks);
  PackLayout LayOut(const std::vector<double>& keys);

 private:
  struct Node {
    int low_lower, high_lower, low_upper, high_upper;
    int begin, end;  // of order_
    int best;        // not placed, of the highest key; -1: none
  };
  void Build(int node, int begin, int end, bool by_lower);
  bool Before(int a, int b) const;  // a is the better choice
  void Refresh(int node);
  void Remove(int block);
  void Query(int node, int lower, int upper, int& best) const;

  const PackBlocks& blocks_;
  std::vector<int> order_;
  std::vector<int> leaf_of_;  // by block
  std::vector<Node> nodes_;   // heap order: children of i at 2i + 1, 2i + 2
  std::vector<bool> placed_;
  const std::vector<double>* keys_ = nullptr;
};

enum class ExactResult { kFound, kNone, kGaveUp };

// Looks for a layout no higher than the capacity, which is a multiple of the
// alignment. kNone proves that these blocks have none, where they are plain.
ExactResult PackExact(const PackBlocks& blocks, int64_t capacity_bytes,
                      uint64_t seed, const PackTuning& tuning, PackWork& work,
                      PackLayout& layout);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_PACK_PACK_PARTS_H_
