// A schedule to start from, that keeps at the highest point what is worth most.
#ifndef LOADLINE_PLANNER_SEARCH_PEAK_CUT_SEED_H_
#define LOADLINE_PLANNER_SEARCH_PEAK_CUT_SEED_H_

#include <cstdint>
#include <optional>

#include "planner/schedule/schedule.h"

namespace loadline::planner {

struct PeakCutSeedOptions {
  int64_t iteration_limit = 0;  // of the simplex method
  // Of the program without integers: several times as quick, a few percent
  // worse, and perhaps some bytes above the target.
  bool rounded = true;
};

struct PeakCutSeed {
  std::optional<Schedule> schedule;
  int64_t iterations = 0;  // of the simplex method
};

// `order` (every node once, nothing copied) with reruns, so that no more than
// about the target is alive at its highest point: which of the values that lie
// idle there are kept, and which are made again, from what, is decided together
// by one program of least rerun time (the single cut of
// bound_program.h, in this order). What it would rather copy stays, for the
// descents to copy. Other points may still be too high, and the schedule may
// be invalid where an update stands before what would read the old version
// again. None where nothing is too high at that point, or the program found no
// way in so many simplex iterations.
PeakCutSeed SeedFromPeakCut(const SearchModel& model, const Schedule& order,
                            int64_t target_bytes,
                            const PeakCutSeedOptions& options);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SEARCH_PEAK_CUT_SEED_H_
