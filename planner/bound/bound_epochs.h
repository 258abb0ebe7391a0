// The cuts of one program divide a plan into epochs: epoch i lasts from the
// first run of cut i to that of cut i + 1, epoch 0 is before the first cut.
// This class says in which epochs the first run of each node may lie.
#ifndef LOADLINE_PLANNER_BOUND_BOUND_EPOCHS_H_
#define LOADLINE_PLANNER_BOUND_BOUND_EPOCHS_H_

#include <vector>

#include "planner/bound/bound_cuts.h"
#include "planner/schedule/search_model.h"

namespace loadline::planner {

class CutEpochs {
 public:
  // `cuts`: nodes, at least one, each an ancestor of the next. `until`: a node
  // that the last cut is an ancestor of; only what happens before its first
  // run counts. -1: everything counts.
  CutEpochs(const SearchModel& model, const Precedence& precedence,
            const std::vector<int>& cuts, int until);

  // Cuts, which is also the number of the last epoch.
  int count() const { return static_cast<int>(cuts_.size()); }
  int cut(int i) const { return cuts_[i - 1]; }  // i from 1
  bool to_end() const { return to_end_; }

  // The node's first run lies in an epoch of [From, Until). Holds for every
  // plan: an ancestor of cut i first runs before it, a descendant after it.
  int From(int node) const { return from_[node]; }
  int Until(int node) const { return until_[node]; }
  // Is that one epoch only?
  bool Settled(int node) const { return until_[node] == from_[node] + 1; }
  bool IsCut(int node) const { return is_cut_[node] != 0; }
  // Has the node surely run when cut i starts for the first time?
  bool RanBefore(int node, int i) const { return ancestors_[i - 1][node] != 0; }
  // The first cut before which the node has surely run; count() + 1: none.
  int FirstCutAfter(int node) const;
  // Does the node's first run count, see `until`?
  bool Counts(int node) const { return in_span_[node] != 0; }

 private:
  std::vector<int> cuts_;
  bool to_end_;
  std::vector<std::vector<char>> ancestors_;  // by cut, by node
  std::vector<int> from_, until_;             // by node
  std::vector<char> is_cut_, in_span_;        // by node
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BOUND_BOUND_EPOCHS_H_
