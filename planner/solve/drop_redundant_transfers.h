// Undoing what a plan does without need at the budget it is for.
#ifndef LOADLINE_PLANNER_SOLVE_DROP_REDUNDANT_TRANSFERS_H_
#define LOADLINE_PLANNER_SOLVE_DROP_REDUNDANT_TRANSFERS_H_

#include <cstdint>
#include <optional>

#include "planner/layout/laid_out_schedule.h"
#include "planner/schedule/search_model.h"
#include "planner/search/search.h"

namespace loadline::planner {

// `placed` was made for fewer bytes than `budget_bytes`, or is of a search that
// copies freely as long as copies hide. The same step time to the nanosecond,
// so that a larger budget is still never slower (where copies cost switches:
// no more time, and at most all switches less), with as many copies and reruns
// as are needless taken out, laid out within the budget; none if nothing is
// gained or the rest cannot be laid out.
std::optional<LaidOutSchedule> DropRedundantTransfers(
    const SearchModel& model, const LaidOutSchedule& placed,
    int64_t budget_bytes, int64_t pack_work_limit, WorkBudget effort);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SOLVE_DROP_REDUNDANT_TRANSFERS_H_
