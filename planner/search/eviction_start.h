// A start schedule from one pass over an order, in nearly linear time.
#ifndef LOADLINE_PLANNER_SEARCH_EVICTION_START_H_
#define LOADLINE_PLANNER_SEARCH_EVICTION_START_H_

#include <cstdint>
#include <optional>

#include "planner/schedule/schedule.h"

namespace loadline::planner {

// Runs `order` (every node once, no copies) and, wherever the bytes would
// exceed the target, evicts idle values: each is copied to the host, or dropped
// and computed again before its next use, with whatever its producer reads.
// Where that is not enough and nodes may run again, persistent values move to
// the host, where they then live between steps. Evicted is the value with the
// least added time per byte and per time until its next use, as in dynamic
// tensor rematerialization (Kirisame et al., ICLR 2021), but with the next use
// known. Only a fixed number of values is compared for each eviction; `seed`
// draws them.
//
// Returns a valid schedule within the target, or nothing if the pass cannot go
// on or repeats too many nodes. Takes O(n log n) time for n nodes and reruns.
std::optional<Schedule> EvictionStart(const SearchModel& model,
                                      const Schedule& order,
                                      int64_t target_bytes, uint64_t seed);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SEARCH_EVICTION_START_H_
