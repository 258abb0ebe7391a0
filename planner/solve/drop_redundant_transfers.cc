// The clean-up of the search once more, with the bytes of the budget itself as
// its target. It may also leave out a copy that the step waits for, and then
// there would be a faster step than the search takes at this budget: such a
// copy stays (where copies cost switches, one that saves no more time than all
// switches together may go). What then lies too high is tried again with fewer
// bytes. Tested in drop_redundant_transfers_test.cc and transformer_test.cc.
#include "planner/solve/drop_redundant_transfers.h"

#include <cmath>
#include <utility>

#include "planner/schedule/simulate.h"
#include "planner/search/search_state.h"

namespace loadline::planner {
namespace {

constexpr int kTries = 5;

}  // namespace

std::optional<LaidOutSchedule> DropRedundantTransfers(
    const SearchModel& model, const LaidOutSchedule& placed,
    int64_t budget_bytes, int64_t pack_work_limit, WorkBudget effort) {
  const int64_t peak_bytes = FindLifetimes(model, placed.schedule).peak_bytes;
  int64_t target_bytes = budget_bytes;
  for (int tried = 0; tried < kTries && target_bytes > peak_bytes; ++tried) {
    SearchState state(model, placed.schedule, target_bytes);
    // Where copies cost no switches, the plan's own time: then no larger budget
    // gets a slower plan. What is dropped saves its switches.
    const double floor_ns =
        placed.step_ns - model.switch_ns * state.copy_count();
    CleanUp(state, effort, floor_ns);
    const double step_ns = std::round(state.Makespan());
    if (step_ns > placed.step_ns || step_ns < floor_ns) return std::nullopt;
    int64_t excess_bytes = 0;
    std::optional<LaidOutSchedule> relaxed =
        LayOut(model, state.ToSchedule(), step_ns,
               {budget_bytes, pack_work_limit, effort.cancel}, &excess_bytes);
    if (relaxed) {
      const bool fewer = relaxed->plan.steps.size() < placed.plan.steps.size();
      return fewer ? std::move(relaxed) : std::nullopt;
    }
    if (effort.Interrupted()) return std::nullopt;
    target_bytes -= excess_bytes;
  }
  return std::nullopt;
}

}  // namespace loadline::planner
