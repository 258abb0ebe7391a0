// Which values get columns in which epoch of a bound's program.
#ifndef LOADLINE_PLANNER_BOUND_BOUND_TRACKING_H_
#define LOADLINE_PLANNER_BOUND_BOUND_TRACKING_H_

#include <vector>

#include "planner/bound/bound_epochs.h"
#include "planner/bound/bound_free_nodes.h"
#include "planner/schedule/search_model.h"

namespace loadline::planner {

// A value is tracked in epoch i if it exists by cut i (or its node is free) and
// - a first run, or the end of the step, surely needs it in epoch i or later,
// or
// - it is tracked in epoch i + 1, or
// - a node that may run again to make a tracked value reads it.
// What is not tracked may be anywhere: leaving values out only weakens the
// bound. Persistent values are never tracked; they have ChainColumns.
class TrackedValues {
 public:
  TrackedValues(const SearchModel& model, const CutEpochs& epochs,
                const FreeNodes& free);

  // In ascending order.
  const std::vector<int>& In(int epoch) const { return in_[epoch]; }
  bool Has(int value, int epoch) const;
  // The first cut by which the value was surely made, or 1 if its node is
  // free; epochs.count() + 1: none, or a persistent value.
  int Birth(int value) const { return birth_[value]; }

 private:
  bool Wanted(int v, int i) const;
  void AddInputsOfReruns(int i, std::vector<char>& relevant) const;

  const SearchModel& model_;
  const CutEpochs& epochs_;
  const FreeNodes& free_;
  std::vector<int> birth_;            // by value
  std::vector<std::vector<int>> in_;  // by epoch from 1
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BOUND_BOUND_TRACKING_H_
