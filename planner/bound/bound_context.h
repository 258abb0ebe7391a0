// What every family of rows in a bound's program reads. Internal to bound/.
#ifndef LOADLINE_PLANNER_BOUND_BOUND_CONTEXT_H_
#define LOADLINE_PLANNER_BOUND_BOUND_CONTEXT_H_

#include <algorithm>

#include "planner/bound/bound_costs.h"
#include "planner/bound/bound_epochs.h"
#include "planner/bound/bound_free_nodes.h"
#include "planner/bound/bound_rows.h"
#include "planner/schedule/search_model.h"

namespace loadline::planner {

struct BoundContext {
  const SearchModel& model;
  const LeastCosts& least;
  const CutEpochs& epochs;
  const FreeNodes& free;
  double budget_bytes;  // rounded up to the alignment
  BoundRows& rows;      // written to

  bool Reads(int node, int value) const {
    return std::binary_search(model.reads[node].begin(),
                              model.reads[node].end(), value);
  }
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BOUND_BOUND_CONTEXT_H_
