// Where persistent values live between steps, and when they are copied, asked
// again of a schedule that is otherwise complete.
#ifndef LOADLINE_PLANNER_SEARCH_PERSISTENT_PLACEMENT_H_
#define LOADLINE_PLANNER_SEARCH_PERSISTENT_PLACEMENT_H_

#include "planner/search/search.h"
#include "planner/search/search_state.h"

namespace loadline::planner {

// For each persistent value that leaves the device: at home on the host, or at
// home on the device and away for a while, with earlier and later copies;
// whatever makes the step shorter, not below `floor_ns`, with no more bytes
// over the target. True if anything did.
bool PlacePersistentValues(SearchState& state, WorkBudget& effort,
                           double floor_ns = 0);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SEARCH_PERSISTENT_PLACEMENT_H_
