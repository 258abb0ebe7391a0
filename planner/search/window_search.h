// One window of the large-neighbourhood search, solved.
#ifndef LOADLINE_PLANNER_SEARCH_WINDOW_SEARCH_H_
#define LOADLINE_PLANNER_SEARCH_WINDOW_SEARCH_H_

#include <optional>

#include "planner/search/search.h"

namespace loadline::planner {

struct WindowGoal {
  int most_steps = 0;
  double best_ns = 0;   // must be faster
  double floor_ns = 0;  // no faster
};

// The steps of window.h from a committed state over its target, by branch and
// bound. False if a limit was hit. `best` is what was found, if anything.
bool SearchWindow(SearchState& state, const WindowGoal& goal,
                  WorkBudget& effort, std::optional<Schedule>* best);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SEARCH_WINDOW_SEARCH_H_
