// From the search's sequence to a Plan: buffers at addresses, steps with waits.
#ifndef LOADLINE_PLANNER_LAYOUT_LOWER_SCHEDULE_H_
#define LOADLINE_PLANNER_LAYOUT_LOWER_SCHEDULE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "planner/base/stop.h"
#include "planner/pack/pack.h"
#include "planner/problem/plan.h"
#include "planner/schedule/schedule.h"

namespace loadline::planner {

struct LowerScheduleOptions {
  int64_t budget_bytes = 0;
  // Take the lowest layout found even if it exceeds the budget, which then
  // becomes its height.
  bool tightest = false;
  int64_t pack_work_limit = 20'000'000;
  uint64_t seed = 0;
  Stop stop;
};

// The plan of a valid schedule, without prediction, bounds and decisions.
// ResourceExhausted if no layout fits the budget or the host limit; `report`
// (may be null) then says how high the best layout was.
absl::StatusOr<Plan> LowerSchedule(const SearchModel& model,
                                   const Schedule& schedule,
                                   const LowerScheduleOptions& options,
                                   PackReport* report = nullptr);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_LAYOUT_LOWER_SCHEDULE_H_
