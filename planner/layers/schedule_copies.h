// Copies at the times at which the lanes can do them.
#ifndef LOADLINE_PLANNER_LAYERS_SCHEDULE_COPIES_H_
#define LOADLINE_PLANNER_LAYERS_SCHEDULE_COPIES_H_

#include <optional>

#include "planner/schedule/schedule.h"

namespace loadline::planner {

// The same runs and copies, with each copy out ended as soon as its lane gets
// to it, and each copy back started as late as brings it in time. None if that
// makes no valid schedule. Faster than `schedule` where its copies came too
// close to each other; bytes may rise or fall.
std::optional<Schedule> ScheduleCopies(const SearchModel& model,
                                       const Schedule& schedule);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_LAYERS_SCHEDULE_COPIES_H_
