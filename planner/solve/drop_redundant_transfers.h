// Removes copies and reruns that a plan does not need at its budget.
#ifndef LOADLINE_PLANNER_SOLVE_DROP_REDUNDANT_TRANSFERS_H_
#define LOADLINE_PLANNER_SOLVE_DROP_REDUNDANT_TRANSFERS_H_

#include <cstdint>
#include <optional>

#include "planner/layout/laid_out_schedule.h"
#include "planner/schedule/search_model.h"
#include "planner/search/search.h"

namespace loadline::planner {

// `laid_out` was made for fewer bytes than `budget_bytes`, or by a search to
// which hidden copies cost nothing. Returns a schedule with fewer of them, laid
// out within the budget, that takes no longer, and no less than `floor_ns`: the
// step time that larger budgets reach. None if nothing can be removed or the
// rest cannot be laid out.
std::optional<LaidOutSchedule> DropRedundantTransfers(
    const SearchModel& model, const LaidOutSchedule& laid_out,
    int64_t budget_bytes, double floor_ns, WorkBudget work);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SOLVE_DROP_REDUNDANT_TRANSFERS_H_
