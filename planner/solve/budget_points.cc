// Tested in budget_points_test.cc.
#include "planner/solve/budget_points.h"

#include <algorithm>

namespace loadline::planner {

int64_t BudgetPoints::BytesAt(int point) const {
  return static_cast<int64_t>(static_cast<__int128>(peak_bytes_) * point /
                              tuning_.points);
}

int BudgetPoints::Between(int lower, int upper) const {
  for (const auto& [distance, share] : tuning_.roundness) {
    const int point =
        ((lower + upper) / 2 + distance / 2) / distance * distance;
    if (point > lower && point < upper) return point;
  }
  return 0;
}

double BudgetPoints::WorkShare(int point) const {
  for (const auto& [distance, share] : tuning_.roundness) {
    if (point % distance != 0) continue;
    const bool tight = point >= tuning_.least_tight_share * tuning_.points &&
                       point <= tuning_.most_tight_share * tuning_.points;
    return tight ? tuning_.tight_factor * share : share;
  }
  return 0;
}

int64_t BudgetPoints::GrainBytes() const {
  return std::max<int64_t>(
      1, peak_bytes_ / (tuning_.grains_per_point * tuning_.points));
}

}  // namespace loadline::planner
