// The same item of a schedule for another node or value, in another model of
// like parts.
#ifndef LOADLINE_PLANNER_LAYERS_MAP_ITEM_H_
#define LOADLINE_PLANNER_LAYERS_MAP_ITEM_H_

#include "planner/schedule/schedule.h"

namespace loadline::planner {

// Whose item it is; the other is -1.
struct Subject {
  int node = -1;
  int value = -1;
};

Subject SubjectOf(const SearchModel& model, const Item& item);

// Variant and codec stay the same; id -1: not there.
Item MapItem(const SearchModel& from, const Item& item, const SearchModel& to,
             Subject subject);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_LAYERS_MAP_ITEM_H_
