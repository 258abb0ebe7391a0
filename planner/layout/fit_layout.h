// A schedule found by the search, made to fit its budget with addresses.
#ifndef LOADLINE_PLANNER_LAYOUT_FIT_LAYOUT_H_
#define LOADLINE_PLANNER_LAYOUT_FIT_LAYOUT_H_

#include <cstdint>
#include <optional>

#include "planner/layout/laid_out_schedule.h"
#include "planner/search/point_search.h"

namespace loadline::planner {

struct FitLayoutOptions {
  LayOutOptions place;
  double floor_ns = 0;        // the schedule is made no faster than this
  int64_t pressure_work = 0;  // of each attempt to free bytes
  uint64_t seed = 0;
};

// Lays the find out within the budget; if that fails, frees bytes that cost no
// time and tries again. None if it still lies too high, by `excess_bytes`;
// `found` is then the schedule that came closest. `outside` only interrupts.
std::optional<LaidOutSchedule> FitLayout(const SearchModel& model,
                                         FoundSchedule& found,
                                         const FitLayoutOptions& options,
                                         const WorkBudget& outside,
                                         int64_t* excess_bytes);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_LAYOUT_FIT_LAYOUT_H_
