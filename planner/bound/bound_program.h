// What every plan within a budget obeys at the first runs of a chain of
// comparable nodes (*cuts*), as a program whose least cost bounds its time.
#ifndef LOADLINE_PLANNER_BOUND_BOUND_PROGRAM_H_
#define LOADLINE_PLANNER_BOUND_BOUND_PROGRAM_H_

#include <cstdint>
#include <vector>

#include "planner/bound/bound_cuts.h"
#include "planner/bound/mip.h"
#include "planner/schedule/search_model.h"

namespace loadline::planner {

// The fastest and the leanest way to run each node: variants are chosen freely
// in the bound, so that it holds for any of them.
struct LeastCosts {
  std::vector<int64_t> node_ns;
  std::vector<int64_t> workspace_bytes;  // charged, as in SearchModel
  int64_t compute_ns = 0;                // every node once
};
LeastCosts FindLeastCosts(const SearchModel& model);

struct BoundProgram {
  MipProgram program;
  double unit_ns = 1;    // a cost of 1
  double offset_ns = 0;  // time of a plan >= offset_ns + unit_ns * cost
};

// `free_nodes`: with one cut, also choose which of the nodes that are neither
// its ancestors nor its descendants have run before it; such a node's inputs
// are still needed, or its outputs already are. Stronger, and much dearer.
// `cuts`: nodes, each an ancestor of the next, at least one. `until`: a node
// that the last cut is an ancestor of, or -1. Only what is run or run again
// from the first cut's first run to that node's (-1: to the end) is needed and
// counts, so that the costs of programs whose spans do not overlap may be
// added; encodes then cost nothing, and nothing may be copied. `horizon_ns`: a
// time above which the bound is of no interest (a plan takes as long already);
// the program may say no more than that.
BoundProgram MakeBoundProgram(const SearchModel& model, const LeastCosts& least,
                              const Precedence& precedence,
                              const std::vector<int>& cuts, int until,
                              int64_t budget_bytes, double horizon_ns,
                              bool free_nodes);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BOUND_BOUND_PROGRAM_H_
