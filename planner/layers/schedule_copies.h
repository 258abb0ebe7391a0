// Moves copies to the times at which their lanes can run them.
#ifndef LOADLINE_PLANNER_LAYERS_SCHEDULE_COPIES_H_
#define LOADLINE_PLANNER_LAYERS_SCHEDULE_COPIES_H_

#include <optional>

#include "planner/schedule/schedule.h"

namespace loadline::planner {

// The same runs and copies. Compute waits for a copy out no sooner than its
// lane can have ended it, and a copy back starts as late as still ends in time.
// None if that gives no valid schedule. Faster than `schedule` where its copies
// were too close to each other; bytes may rise or fall.
std::optional<Schedule> ScheduleCopies(const SearchModel& model,
                                       const Schedule& schedule);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_LAYERS_SCHEDULE_COPIES_H_
