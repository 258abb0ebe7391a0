// A start schedule from one pass over an order, in nearly linear time.
#ifndef LOADLINE_PLANNER_SEARCH_EVICTION_START_H_
#define LOADLINE_PLANNER_SEARCH_EVICTION_START_H_

#include <cstdint>
#include <optional>

#include "planner/schedule/schedule.h"

namespace loadline::planner {

struct EvictionStartOptions {
  int64_t target_bytes = 0;  // no moment needs more
  // Moments need more than this only where evicting every idle value of at
  // least a thousandth of the target does not suffice. A schedule that is full
  // at few moments has a layout of fewer bytes. At most the target.
  int64_t usual_bytes = INT64_MAX;
  uint64_t seed = 0;
};

// Runs `order` (every node once, no copies) and, wherever the bytes would
// exceed the target, evicts idle values: each is copied to the host, or dropped
// and computed again before its next use, with whatever its producer reads.
// Where the host is full, values that were copied out are computed again
// instead.
// Where that is not enough and nodes may run again, persistent values move to
// the host, where they then live between steps. Evicted is the value with the
// least added time per byte and per time until its next use, as in dynamic
// tensor rematerialization (Kirisame et al., ICLR 2021), but with the next use
// known. Only a fixed number of values is compared for each eviction; the seed
// draws them.
//
// Returns a valid schedule within the target, or nothing if the pass cannot go
// on or repeats too many nodes. Takes O(n log n) time for n nodes and reruns.
std::optional<Schedule> EvictionStart(const SearchModel& model,
                                      const Schedule& order,
                                      const EvictionStartOptions& options);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SEARCH_EVICTION_START_H_
