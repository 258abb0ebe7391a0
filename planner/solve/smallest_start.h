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

// Runs eviction passes (eviction_start.h) over each order, with targets at or
// just above `bound_bytes`, the proven lower bound on the peak, and lays out
// each schedule. Returns the plan with the smallest arena; among equals, the
// fastest. Returns none if no pass stays within its target. The time is nearly
// linear in the nodes and far below that of a search. The plan may be slow: it
// may copy every value out and in for every node. `outside` only interrupts.
std::optional<LaidOutSchedule> SmallestStart(
    const SearchModel& model, const std::vector<Schedule>& orders,
    int64_t bound_bytes, uint64_t seed, const WorkBudget& outside);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SOLVE_SMALLEST_START_H_
