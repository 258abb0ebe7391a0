// A plan of few bytes that needs no search.
#ifndef LOADLINE_PLANNER_SOLVE_SMALLEST_START_H_
#define LOADLINE_PLANNER_SOLVE_SMALLEST_START_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/layout/laid_out_schedule.h"
#include "planner/schedule/schedule.h"
#include "planner/search/search.h"

namespace loadline::planner {

// Evicts (eviction_start.h) from each order to targets just above
// `bound_bytes`, which no schedule goes below, lays out what comes of it and
// returns the one of the smallest arena; of equals the fastest. None: no pass
// ends within its target. Takes nearly linear time, far less than a search, and
// says nothing about the step time: everything may be copied out and in for
// every node. `outside` only interrupts.
std::optional<LaidOutSchedule> SmallestStart(
    const SearchModel& model, const std::vector<Schedule>& orders,
    int64_t bound_bytes, uint64_t seed, const WorkBudget& outside);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SOLVE_SMALLEST_START_H_
