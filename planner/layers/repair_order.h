// Makes a valid schedule of items in a nearly valid order.
#ifndef LOADLINE_PLANNER_LAYERS_REPAIR_ORDER_H_
#define LOADLINE_PLANNER_LAYERS_REPAIR_ORDER_H_

#include <optional>

#include "planner/schedule/schedule.h"

namespace loadline::planner {

// Delays each item until everything it needs is done, and removes copies
// without a reader. None if that does not make the schedule valid.
std::optional<Schedule> RepairOrder(const SearchModel& model,
                                    Schedule schedule);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_LAYERS_REPAIR_ORDER_H_
