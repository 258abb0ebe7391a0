// The modes of planning: recomputation alone, copies alone, both, with codecs.
#ifndef LOADLINE_PLANNER_SOLVE_SEARCH_MODE_H_
#define LOADLINE_PLANNER_SOLVE_SEARCH_MODE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "planner/layers/coarsen_layers.h"
#include "planner/layout/laid_out_schedule.h"
#include "planner/schedule/search_model.h"
#include "planner/solve/schedule_search.h"

namespace loadline::planner {

// One mode, and its plans at the points of the bisection.
struct SearchMode {
  SearchModel model;
  std::unique_ptr<ScheduleSearch> search;
  bool codecs = false;             // may use codecs: the last mode
  double share = 1;                // of a point's work
  int64_t bound_bytes = 0;         // no plan needs fewer
  int64_t least_target_bytes = 0;  // no schedule meets a smaller target
  // Plans of the lower and the upper point; none: nothing was found there.
  std::optional<LaidOutSchedule> lower, upper;
  std::optional<LaidOutSchedule> here;  // of the point searched last
  // Of the lowest point where one was found.
  std::optional<LaidOutSchedule> met;
  // Its model is WithApartLanes; `here_timed` is `here` with true step time.
  bool apart_lanes = false;
  std::optional<LaidOutSchedule> here_timed;
};

// The modes for what `options` allow, in the order in which a point is
// searched: each mode's plans are starts of the last, which is the one asked
// for. `orders` and `layers` (null: the whole problem is searched) must outlive
// them.
std::vector<std::unique_ptr<SearchMode>> MakeSearchModes(
    const Problem& problem, const SearchModelOptions& options,
    const std::vector<Schedule>& orders, const CoarseLayers* layers);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SOLVE_SEARCH_MODE_H_
