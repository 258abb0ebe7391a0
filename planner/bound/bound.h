// Proven lower bounds: what no plan of any kind can undercut.
#ifndef LOADLINE_PLANNER_BOUND_BOUND_H_
#define LOADLINE_PLANNER_BOUND_BOUND_H_

#include <cstdint>
#include <vector>

#include "planner/schedule/search_model.h"

namespace loadline::planner {

struct PeakBound {
  int64_t bytes = 0;        // of raw (unpadded) live bytes
  int node = -1;            // where; -1: at the start or the end of the step
  std::vector<int> values;  // alive there, largest first
};

// While a node runs, its inputs, outputs (less what may be in place) and
// workspace are alive, and every persistent value that may never leave the
// device; so are all inputs at the start and all outputs at the end.
PeakBound BoundPeak(const SearchModel& model);

// No plan has a shorter step: compute runs every node at least once.
int64_t BoundStep(const SearchModel& model);

struct StepBoundOptions {
  int64_t budget_bytes = 0;
  // A plan that is known; a bound that reaches it needs no improvement.
  int64_t known_step_ns = INT64_MAX;
  // Simplex iterations, the unit of work: 10,000 take about half a second. 0:
  // only what needs no solver.
  int64_t work_limit = 15'000;
};

struct StepBound {
  int64_t step_ns = 0;    // no plan within the budget is faster
  bool no_plan = false;   // no plan is within the budget at all
  std::vector<int> cuts;  // nodes whose first runs prove it; empty: compute
  int64_t work = 0;       // simplex iterations used
};

// Of the plans that the model permits. Cuts at single nodes, ranked by the
// time their forced bytes seem to cost: the best are bounded by linear
// programs, the very best by branch and bound, and as long as work is left also
// with the choice of which incomparable nodes have run before (a graph of
// layers drawn at random has few others), added up over spans between cuts, and
// jointly with other cuts.
StepBound BoundStepAt(const SearchModel& model,
                      const StepBoundOptions& options);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BOUND_BOUND_H_
