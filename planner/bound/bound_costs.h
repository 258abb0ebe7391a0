// The least time and the least bytes that any plan pays for a node or a value,
// whichever variant or codec the plan picks.
#ifndef LOADLINE_PLANNER_BOUND_BOUND_COSTS_H_
#define LOADLINE_PLANNER_BOUND_BOUND_COSTS_H_

#include <cstdint>
#include <vector>

#include "planner/schedule/search_model.h"

namespace loadline::planner {

// The fastest and the leanest way to run each node. Both may come from
// different variants: a bound must hold for every choice.
struct LeastCosts {
  std::vector<int64_t> node_ns;          // by node
  std::vector<int64_t> workspace_bytes;  // by node; charged, as in SearchModel
  int64_t compute_ns = 0;                // every node once
};
LeastCosts FindLeastCosts(const SearchModel& model);

// Raw bytes of the smallest representation of a value: plain or encoded.
int64_t LeastValueBytes(const SearchModel& model, int value);
// The same over all versions of a persistent value. Some version is on the
// device or on the host at any time.
int64_t LeastChainBytes(const SearchModel& model, int chain);

// Rounded up to the alignment, as an address plan charges it.
int64_t ChargedBytes(const SearchModel& model, int64_t bytes);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BOUND_BOUND_COSTS_H_
