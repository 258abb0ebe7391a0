// Translates an item of a schedule to another node or value in another model.
#ifndef LOADLINE_PLANNER_LAYERS_MAP_ITEM_H_
#define LOADLINE_PLANNER_LAYERS_MAP_ITEM_H_

#include "planner/schedule/schedule.h"

namespace loadline::planner {

// The node or the value of an item; the other is -1.
struct Subject {
  int node = -1;
  int value = -1;
};

Subject SubjectOf(const SearchModel& model, const Item& item);

// The same item for `subject` in `to`, with the same variant or codec; id -1:
// `to` has none.
Item MapItem(const SearchModel& from, const Item& item, const SearchModel& to,
             Subject subject);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_LAYERS_MAP_ITEM_H_
