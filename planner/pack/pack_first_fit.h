// First fit in several orders, for pack.cc and its tests.
#ifndef LOADLINE_PLANNER_PACK_PACK_FIRST_FIT_H_
#define LOADLINE_PLANNER_PACK_PACK_FIRST_FIT_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "planner/pack/pack_parts.h"

namespace loadline::planner {

// Places blocks in a given order, each in the lowest (or best fitting) gap
// between the placed ones. Treats gaps in lives and fixed offsets exactly. Time
// and bits of memory are quadratic in the number of blocks.
class PackFirstFit {
 public:
  // `blocks` and `tuning` must outlive this. It stops at `target_bytes`: the
  // capacity, or what is known to be needed if that is more.
  PackFirstFit(const PackBlocks& blocks, int64_t alignment_bytes,
               int64_t capacity_bytes, int64_t target_bytes, uint64_t seed,
               const PackTuning& tuning);

  // Fixed orders, whatever the work; `best` is replaced by what is lower.
  void TryRules(PackLayout& best);

  // While work is left, moves blocks that end above the capacity forward in the
  // best of those orders. A pair of blocks looked at is one unit of work.
  void Improve(PackWork& work, PackLayout& best);

 private:
  void StackResidents();
  void FindNeighbours();
  // Places the free blocks in this order; returns the height.
  int64_t LayOut(const std::vector<int>& order, bool best_fit,
                 PackLayout& best);

  const PackBlocks& blocks_;
  const int64_t alignment_, capacity_, target_;
  const PackTuning& tuning_;
  std::mt19937_64 random_;
  const size_t count_;
  std::vector<bool> conflict_;  // [a * count_ + b]: alive together somewhere
  std::vector<int64_t> base_offset_;  // residents and fixed blocks; -1: free
  std::vector<int> free_;
  std::vector<int> placed_;  // by offset
  std::vector<int64_t> offset_;
  int64_t floor_ = 0;  // end of the residents
  int64_t pairs_ = 0;
  // The lowest layout of these orders; `best` may be lower.
  int64_t height_ = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> best_offset_;
  std::vector<int> best_order_;
  bool best_fit_ = false;
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_PACK_PACK_FIRST_FIT_H_
