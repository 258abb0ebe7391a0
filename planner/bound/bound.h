// Lower bounds on peak memory and step time that hold for every plan.
#ifndef LOADLINE_PLANNER_BOUND_BOUND_H_
#define LOADLINE_PLANNER_BOUND_BOUND_H_

#include <cstdint>
#include <vector>

#include "planner/base/stop.h"
#include "planner/bound/bound_tuning.h"
#include "planner/schedule/search_model.h"

namespace loadline::planner {

struct PeakBound {
  int64_t bytes = 0;        // of raw (unpadded) live bytes
  int node = -1;            // where; -1: at the start or the end of the step
  std::vector<int> values;  // alive there, largest first
};

// No plan has a lower peak. While a node runs, its inputs, its outputs (less
// what may be in place), its workspace and every persistent value that may
// never leave the device are alive; at the start all inputs are, at the end all
// outputs.
PeakBound BoundPeak(const SearchModel& model);
// The same for SearchModel::bytes: no schedule has a lower peak with every
// buffer rounded up to the alignment.
int64_t BoundChargedPeak(const SearchModel& model);

// No plan has a shorter step: compute runs every node at least once.
int64_t BoundStep(const SearchModel& model);

struct StepBoundOptions {
  int64_t budget_bytes = 0;
  // Step time of a known plan that the model permits. Work stops once the bound
  // reaches it. The bound holds for plans that are no slower; one above the
  // known plan, or no_plan, is an error of our own and is not hidden.
  int64_t known_step_ns = INT64_MAX;
  // Simplex iterations, the unit of work: 10,000 take about half a second. 0:
  // only what needs no solver.
  int64_t work_limit = 15'000;
  // Ends with what is proven by then. Not deterministic.
  Stop stop;
  BoundTuning tuning;
};

struct StepBound {
  int64_t step_ns = 0;   // no plan within the budget is faster
  bool no_plan = false;  // no plan is within the budget at all
  std::vector<int>
      cuts;  // nodes whose first runs prove it; empty: compute time
  // How these prove it: by a program that chooses which nodes run before the
  // cut, or by the sum of what each proves up to the next.
  bool free_nodes = false;
  bool spans = false;
  int64_t work = 0;  // simplex iterations used
};

// Holds for every plan that the model permits, in any order of its nodes.
// Deterministic unless stopped: limits count work. The first runs of single
// nodes (*cuts*) are ranked by the time that freeing memory there seems to
// cost; the best are bounded by linear programs, then by branch and bound,
// alone and several at once (bound_program.h).
StepBound BoundStepAt(const SearchModel& model,
                      const StepBoundOptions& options);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BOUND_BOUND_H_
