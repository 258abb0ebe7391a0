// The search's clean-up once more, with the budget itself as its target. A
// schedule that then lies too high is tried again with fewer bytes. Tested in
// drop_redundant_transfers_test.cc and transformer_test.cc.
#include "planner/solve/drop_redundant_transfers.h"

#include <cmath>
#include <utility>

#include "planner/schedule/simulate.h"
#include "planner/search/search_state.h"

namespace loadline::planner {
std::optional<LaidOutSchedule> DropRedundantTransfers(
    const SearchModel& model, const LaidOutSchedule& laid_out,
    int64_t budget_bytes, double floor_ns, WorkBudget work) {
  const auto& tuning = model.tuning.drop_redundant_transfers;
  if (!tuning.enabled) return std::nullopt;
  const int64_t peak_bytes = FindLifetimes(model, laid_out.schedule).peak_bytes;
  int64_t target_bytes = budget_bytes;
  for (int tried = 0; tried < tuning.most_tries && target_bytes > peak_bytes;
       ++tried) {
    SearchState state(model, laid_out.schedule, target_bytes);
    CleanUp(state, work, floor_ns);
    const double step_ns = std::round(state.Makespan());
    if (step_ns > laid_out.step_ns || step_ns < floor_ns) return std::nullopt;
    int64_t excess_bytes = 0;
    std::optional<LaidOutSchedule> fewer_transfers =
        LayOut(model, state.ToSchedule(), step_ns,
               {budget_bytes, model.tuning.layout.pack_work, work.stop},
               &excess_bytes);
    if (fewer_transfers) {
      const bool fewer =
          fewer_transfers->plan.steps.size() < laid_out.plan.steps.size();
      return fewer ? std::move(fewer_transfers) : std::nullopt;
    }
    if (work.Interrupted()) return std::nullopt;
    target_bytes -= excess_bytes;
  }
  return std::nullopt;
}

}  // namespace loadline::planner
