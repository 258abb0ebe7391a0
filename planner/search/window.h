// Large-neighbourhood search: removes a stretch of optional items from a
// schedule and decides by branch and bound what is rerun, copied or encoded
// instead.
//
// A *window* is a sequence of neighbouring optional items: reruns, copies back,
// decodes, encodes. They are removed (a chain that lives on the host then stays
// on the device), and *steps* bring the schedule within its target again. A
// step frees one value that is idle at the first of the highest positions:
//   - EditRecompute, with all inputs kept alive, or with up to
//     SearchTuning::Window::chain_limit reruns in all, each input rerun or, if
//     possible, kept encoded or copied;
//   - EditCopy with each of SearchTuning::Window::leads, unless an Out would
//     have to move; EditHome likewise; EditStash with each coding.
// A step must leave the schedule valid and the excess area smaller. A window
// has at most `spare_steps` steps more than items were removed. A schedule
// within the target gets no further step.
//
// Unless a limit is hit, the result is the fastest of all schedules that such
// steps lead to, or the old one if none is faster. That is exact for
// independent copy lanes. For coupled lanes a branch is cut once it is slower
// than the best, although a further copy may, rarely, make the step faster.
#ifndef LOADLINE_PLANNER_SEARCH_WINDOW_H_
#define LOADLINE_PLANNER_SEARCH_WINDOW_H_

#include <cstdint>

#include "planner/search/search.h"

namespace loadline::planner {

struct WindowOptions {
  int64_t window_work = 0;  // of the work, for one window
  double floor_ns = 0;      // the step does not get shorter
};

struct WindowReport {
  int searched = 0;
  int finished = 0;  // without hitting a limit
  int improved = 0;
};

// Solves window after window of a state within its target: those that cost the
// most time first, small sizes before large ones, as long as at least half of
// one size finish. The step gets no longer; an improvement is at least half a
// nanosecond. Deterministic unless interrupted.
WindowReport ImproveWindows(SearchState& state, const WindowOptions& options,
                            WorkBudget& effort);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SEARCH_WINDOW_H_
