// Small sets of numbers whose sum is zero. For pack_tiling.cc and its tests.
#ifndef LOADLINE_PLANNER_PACK_ZERO_SUMS_H_
#define LOADLINE_PLANNER_PACK_ZERO_SUMS_H_

#include <cstdint>
#include <vector>

#include "planner/pack/pack_tuning.h"

namespace loadline::planner {

struct ZeroSum {
  std::vector<int> members;  // indexes, ascending
  // Expected number of sets of this size that sum to zero by chance: the sets
  // there are by the largest number.
  double doubt = 0;
};

// Sets of some but not all of the values, none of them zero: least doubt first,
// none of more than `tuning.most_sum_doubt`. Of few values all sets of at most
// half of them, of more values only smaller ones. Adds the sums that were
// looked at to `work`.
std::vector<ZeroSum> FindZeroSums(const std::vector<int64_t>& values,
                                  const PackTuning& tuning, int64_t& work);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_PACK_ZERO_SUMS_H_
