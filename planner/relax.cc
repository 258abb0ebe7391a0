// The clean-up of the search once more, with the bytes of the budget itself as
// its target. What then lies too high is tried again with fewer bytes. Tested
// in transformer_test.cc.
#include "planner/relax.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "planner/emit.h"
#include "planner/search_state.h"
#include "planner/simulate.h"

namespace loadline::planner {
namespace {

constexpr int kTries = 5;

}  // namespace

std::optional<Placed> Relax(const Model& model, const Placed& placed,
                            int64_t budget_bytes, int64_t pack_work_limit,
                            Effort effort) {
  const int64_t peak_bytes = FindLifetimes(model, placed.schedule).peak_bytes;
  int64_t target_bytes = budget_bytes;
  for (int tried = 0; tried < kTries && target_bytes > peak_bytes; ++tried) {
    SearchState state(model, placed.schedule, target_bytes);
    CleanUp(state, effort);
    if (std::round(state.Makespan()) != placed.step_ns) return std::nullopt;
    Placed relaxed;
    relaxed.schedule = state.ToSchedule();
    relaxed.step_ns = placed.step_ns;
    EmitOptions emit;
    emit.budget_bytes = budget_bytes;
    emit.pack_work_limit = pack_work_limit;
    emit.cancel = effort.cancel;
    PackReport report;
    absl::StatusOr<Plan> plan = Emit(model, relaxed.schedule, emit, &report);
    if (plan.ok()) {
      if (plan->steps.size() >= placed.plan.steps.size()) return std::nullopt;
      relaxed.plan = *std::move(plan);
      relaxed.arena_bytes =
          model.problem->addresses
              ? relaxed.plan.arena_bytes
              : FindLifetimes(model, relaxed.schedule).peak_bytes;
      return relaxed;
    }
    if (effort.Interrupted()) return std::nullopt;
    target_bytes -= std::max<int64_t>(1, report.height_bytes - budget_bytes);
  }
  return std::nullopt;
}

}  // namespace loadline::planner
