// A start schedule whose values at the highest point are chosen all at once.
#ifndef LOADLINE_PLANNER_SEARCH_PEAK_CUT_SEED_H_
#define LOADLINE_PLANNER_SEARCH_PEAK_CUT_SEED_H_

#include <cstdint>
#include <optional>

#include "planner/schedule/schedule.h"

namespace loadline::planner {

struct PeakCutSeedOptions {
  int64_t iteration_limit = 0;  // of the simplex method
  // Solves the program without integers and rounds: several times as quick, a
  // few percent worse, and perhaps some bytes above the target.
  bool rounded = true;
};

struct PeakCutSeed {
  std::optional<Schedule> schedule;
  int64_t iterations = 0;  // of the simplex method
};

// `order` (every node once, no copies) with reruns, so that about the target is
// alive at its highest point. One program of least rerun time (the single cut
// of bound_program.h, in this order) decides for all values that are idle there
// which are kept, and which are rerun from which inputs. Values that it would
// copy stay: a greedy descent copies them later. Other points may still be over
// the target. The schedule is invalid if an update comes before a rerun that
// reads the old version. No schedule if that point is within the target, or if
// the program found no solution in so many simplex iterations.
PeakCutSeed SeedFromPeakCut(const SearchModel& model, const Schedule& order,
                            int64_t target_bytes,
                            const PeakCutSeedOptions& options);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SEARCH_PEAK_CUT_SEED_H_
