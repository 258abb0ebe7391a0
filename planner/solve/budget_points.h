// The fixed budgets that the bisection searches.
#ifndef LOADLINE_PLANNER_SOLVE_BUDGET_POINTS_H_
#define LOADLINE_PLANNER_SOLVE_BUDGET_POINTS_H_

#include <cstdint>

#include "planner/schedule/search_tuning.h"

namespace loadline::planner {

// Points are numbered 0 to `count`, evenly from 0 bytes to the peak.
class BudgetPoints {
 public:
  BudgetPoints(int64_t peak_bytes, const SearchTuning::Bisection& tuning)
      : tuning_(tuning), peak_bytes_(peak_bytes) {}

  int count() const { return tuning_.points; }
  int64_t BytesAt(int point) const;
  // The roundest point strictly between that is nearest to the middle; 0: none.
  int Between(int lower, int upper) const;
  // Of the work limit, for a search at the point.
  double WorkShare(int point) const;
  // Budgets closer than this are not distinguished.
  int64_t GrainBytes() const;

 private:
  const SearchTuning::Bisection& tuning_;
  const int64_t peak_bytes_;
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SOLVE_BUDGET_POINTS_H_
