// With one cut, the program may also choose which of the nodes that are neither
// ancestors nor descendants of the cut (*free nodes*) have run before it.
#ifndef LOADLINE_PLANNER_BOUND_BOUND_FREE_NODES_H_
#define LOADLINE_PLANNER_BOUND_BOUND_FREE_NODES_H_

#include <vector>

#include "planner/bound/bound_cuts.h"
#include "planner/bound/bound_epochs.h"
#include "planner/bound/bound_rows.h"
#include "planner/schedule/search_model.h"

namespace loadline::planner {

// Column ran[n] is 1 if free node n first runs before the cut. Rows:
// ran[n] <= ran[p] for each direct predecessor p that is free. Every plan obeys
// them, for first runs follow Precedence.
class FreeNodes {
 public:
  // Adds the columns and rows if `enabled` and there is one cut; else no node
  // is free.
  FreeNodes(const SearchModel& model, const Precedence& precedence,
            const CutEpochs& epochs, bool enabled, BoundRows& rows);

  bool enabled() const { return enabled_; }
  bool Has(int node) const { return ran_[node] >= 0; }
  int Ran(int node) const { return ran_[node]; }  // column; -1: not free

 private:
  const bool enabled_;
  std::vector<int> ran_;  // by node
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BOUND_BOUND_FREE_NODES_H_
