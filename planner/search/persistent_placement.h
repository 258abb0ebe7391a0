// Improves where persistent values live between steps and when they are copied,
// in a schedule that is otherwise complete.
#ifndef LOADLINE_PLANNER_SEARCH_PERSISTENT_PLACEMENT_H_
#define LOADLINE_PLANNER_SEARCH_PERSISTENT_PLACEMENT_H_

#include "planner/search/search.h"
#include "planner/search/search_state.h"

namespace loadline::planner {

// For each persistent value that leaves the device, tries: staying on the
// device, living on the host, or living on the device and leaving it for a
// while, with earlier and later copies. Keeps what shortens the step, not below
// `floor_ns`, without more excess area over the target. True if something was
// kept.
bool PlacePersistentValues(SearchState& state, WorkBudget& effort,
                           double floor_ns = 0);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SEARCH_PERSISTENT_PLACEMENT_H_
