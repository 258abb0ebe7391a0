// A schedule with addresses: the result of a search.
#ifndef LOADLINE_PLANNER_LAYOUT_LAID_OUT_SCHEDULE_H_
#define LOADLINE_PLANNER_LAYOUT_LAID_OUT_SCHEDULE_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "planner/base/stop.h"
#include "planner/problem/plan.h"
#include "planner/schedule/schedule.h"
#include "planner/schedule/search_model.h"

namespace loadline::planner {

// A schedule and its layout.
struct LaidOutSchedule {
  Schedule schedule;
  double step_ns = 0;
  int64_t arena_bytes = 0;
  Plan plan;  // as LowerSchedule leaves it
};

struct LayOutOptions {
  int64_t budget_bytes = 0;
  int64_t pack_work_limit = 0;
  Stop stop;
};

// The schedule, whose step takes `step_ns`, laid out within the budget. None if
// no layout was found; `excess_bytes` (at least 1) then is how much the lowest
// one lies above the budget.
std::optional<LaidOutSchedule> LayOut(const SearchModel& model,
                                      const Schedule& schedule, double step_ns,
                                      const LayOutOptions& options,
                                      int64_t* excess_bytes);

// The schedule in as few bytes as the packer finds. Errors: InvalidArgument
// where it reads a value before it is made or after its update.
absl::StatusOr<LaidOutSchedule> LayOutTightest(const SearchModel& model,
                                               const Schedule& schedule,
                                               double step_ns,
                                               int64_t pack_work_limit);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_LAYOUT_LAID_OUT_SCHEDULE_H_
