// Large-neighbourhood search: reopens a stretch of a schedule and decides anew,
// by branch and bound, what is rerun, copied or encoded there.
//
// A *window* is a run of neighbouring optional items: reruns, copies back,
// decodes, encodes. They are taken out (a chain that lives on the host comes
// home with its copies), and then *steps* bring the schedule within its target
// again. A step frees one value that lies idle at the first of the highest
// positions:
//   - EditRecompute, with all inputs kept alive, or with up to kWindowChain
//     reruns in all, each input rerun or, where that is possible, kept encoded
//     or copied;
//   - EditCopy with each lead of kWindowLeads, unless a copy out would have to
//     move; EditHome likewise; EditStash with each coding.
// It must leave the schedule valid and the excess area over the target smaller,
// and a window has at most kWindowSpareSteps steps more than items were taken
// out. A schedule within the target gets no further step.
//
// Unless a limit is hit, the outcome is the fastest of all the schedules that
// such steps lead to, and the old one if none is faster. That is proven where
// copy lanes do not slow each other down; where they do, a branch is given up
// once it is slower than the best, although a further copy may, rarely, make
// the step faster.
#ifndef LOADLINE_PLANNER_SEARCH_WINDOW_H_
#define LOADLINE_PLANNER_SEARCH_WINDOW_H_

#include <cstdint>

#include "planner/search/search.h"

namespace loadline::planner {

inline constexpr int kWindowChain = 10;
inline constexpr double kWindowLeads[] = {1.2, 3};
inline constexpr int kWindowSpareSteps = 3;

struct WindowOptions {
  int least_items = 4;
  int most_items = 13;
  int64_t window_work = 0;  // of the effort, for one window
  double floor_ns = 0;      // no faster
};

struct WindowReport {
  int searched = 0;
  int finished = 0;  // without hitting a limit
  int improved = 0;
};

// Solves window after window of a state within its target, those that cost the
// most time first, small ones before large ones, as long as most of one size
// are finished. The step gets no slower; what is better is at least a
// nanosecond faster. Deterministic but for an interrupt.
WindowReport ImproveWindows(SearchState& state, const WindowOptions& options,
                            WorkBudget& effort);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SEARCH_WINDOW_H_
