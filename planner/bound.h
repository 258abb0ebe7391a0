// Proven lower bounds: what no plan of any kind can undercut.
#ifndef LOADLINE_PLANNER_BOUND_H_
#define LOADLINE_PLANNER_BOUND_H_

#include <cstdint>
#include <vector>

#include "planner/model.h"

namespace loadline::planner {

struct PeakBound {
  int64_t bytes = 0;        // of raw (unpadded) live bytes
  int node = -1;            // where; -1: at the start or the end of the step
  std::vector<int> values;  // alive there, largest first
};

// While a node runs, its inputs, outputs (less what may be in place) and
// workspace are alive, and every persistent value that may never leave the
// device; so are all inputs at the start and all outputs at the end.
PeakBound BoundPeak(const Model& model);

// No plan has a shorter step: compute runs every node at least once.
int64_t BoundStep(const Model& model);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BOUND_H_
