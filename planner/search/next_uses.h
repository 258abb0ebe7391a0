// When values are read in an order of first runs, and which are held longer.
#ifndef LOADLINE_PLANNER_SEARCH_NEXT_USES_H_
#define LOADLINE_PLANNER_SEARCH_NEXT_USES_H_

#include <algorithm>
#include <limits>
#include <vector>

#include "planner/schedule/schedule.h"

namespace loadline::planner {

// Uses of values (not of encoded ones) by position of the order. A clock walks
// through the order; uses before it are past. A value can be held for a rerun
// at a later position, which counts as one more use.
class NextUses {
 public:
  static constexpr int kNever = std::numeric_limits<int>::max();

  NextUses(const SearchModel& model, const Schedule& order);

  int clock() const { return clock_; }
  void SetClock(int position) { clock_ = position; }
  // The end of the step: the use of outputs and last versions.
  int end() const { return end_; }

  // The first use at the clock or later; kNever if there is none.
  int Next(int value);
  // The last use of all, past or not; -1 if there is none.
  int Last(int value) const {
    const int first = begin_[value], last = begin_[value + 1];
    return std::max(last > first ? uses_[last - 1] : -1, held_to_[value]);
  }
  void HoldTo(int value, int position) {
    held_to_[value] = std::max(held_to_[value], position);
  }

 private:
  int end_ = 0;
  int clock_ = 0;
  std::vector<int> begin_;    // by value: its first index into uses_
  std::vector<int> uses_;     // positions, rising within a value
  std::vector<int> next_;     // by value: index into uses_, not past
  std::vector<int> held_to_;  // by value; -1: not held
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SEARCH_NEXT_USES_H_
