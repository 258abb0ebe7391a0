// An integer program whose least cost bounds the time of every plan within a
// budget: what all such plans obey at the first runs of some comparable nodes
// (*cuts*).
//
// At the moment t_i when cut x_i starts for the first time, every ancestor of
// x_i has ended and no descendant has started. A value that an ancestor made
// and a descendant reads is on the device then, or on the host and copied back
// later, or made again later, or on the device encoded and decoded later; all
// that is on the device fits the budget. With several cuts this holds in every
// epoch [t_i, t_i+1), and what is on the device at t_i+1 was there at t_i or
// came in the epoch. Wherever a plan may do more (copies in flight, second
// instances, encoded copies on the host), the program grants it at no cost, so
// that it stays a relaxation of every valid plan.
//
// The families of rows and their reasons: bound_free_nodes.h, bound_values.h,
// bound_needs.h, bound_chains.h, bound_budget.h, bound_fits.h, bound_lanes.h.
#ifndef LOADLINE_PLANNER_BOUND_BOUND_PROGRAM_H_
#define LOADLINE_PLANNER_BOUND_BOUND_PROGRAM_H_

#include <cstdint>
#include <vector>

#include "planner/bound/bound_costs.h"
#include "planner/bound/bound_cuts.h"
#include "planner/bound/mip.h"
#include "planner/schedule/search_model.h"

namespace loadline::planner {

struct BoundProgram {
  MipProgram program;
  double unit_ns = 1;    // a cost of 1
  double offset_ns = 0;  // time of a plan >= offset_ns + unit_ns * cost
};

struct BoundQuery {
  std::vector<int> cuts;  // nodes, each an ancestor of the next, at least one
  // A node that the last cut is an ancestor of, or -1. Only what is run or run
  // again from the first cut's first run to that of this node (-1: to the end)
  // is needed and counts, so that the costs of programs whose spans do not
  // overlap may be added. Encodes then cost nothing, and nothing may be copied.
  int until = -1;
  int64_t budget_bytes = 0;
  // A time above which the bound is of no interest, because a known plan is as
  // fast; the program may prove no more than that.
  double horizon_ns = 0;
  // With one cut, also choose which nodes that are neither its ancestors nor
  // its descendants have run before it. Stronger, and much more expensive.
  bool free_nodes = false;
};

BoundProgram MakeBoundProgram(const SearchModel& model, const LeastCosts& least,
                              const Precedence& precedence,
                              const BoundQuery& query);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BOUND_BOUND_PROGRAM_H_
