// The branch and bound over one window of the large-neighbourhood search.
#ifndef LOADLINE_PLANNER_SEARCH_WINDOW_SEARCH_H_
#define LOADLINE_PLANNER_SEARCH_WINDOW_SEARCH_H_

#include <optional>

#include "planner/search/search.h"

namespace loadline::planner {

struct WindowGoal {
  int most_steps = 0;
  double best_ns = 0;   // a result must be faster than this
  double floor_ns = 0;  // and not faster than this
};

// Searches the steps of window.h from a committed state. False if a limit was
// hit, so that a better schedule may exist. `best` is the fastest schedule
// found within the goal, if any. The state returns to where it was, except for
// slots and ids.
bool SearchWindow(SearchState& state, const WindowGoal& goal,
                  WorkBudget& effort, std::optional<Schedule>* best);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SEARCH_WINDOW_SEARCH_H_
