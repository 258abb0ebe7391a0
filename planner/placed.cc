// Emit, and the bytes of what came out. Tested through every plan of
// solve_test.cc.
#include "planner/placed.h"

#include <algorithm>
#include <utility>

#include "planner/emit.h"
#include "planner/simulate.h"

namespace loadline::planner {

std::optional<Placed> Place(const Model& model, const Schedule& schedule,
                            double step_ns, const PlaceOptions& options,
                            int64_t* excess_bytes) {
  EmitOptions emit;
  emit.budget_bytes = options.budget_bytes;
  emit.pack_work_limit = options.pack_work_limit;
  emit.cancel = options.cancel;
  PackReport report;
  absl::StatusOr<Plan> plan = Emit(model, schedule, emit, &report);
  if (!plan.ok()) {
    *excess_bytes =
        std::max<int64_t>(1, report.height_bytes - options.budget_bytes);
    return std::nullopt;
  }
  Placed placed;
  placed.schedule = schedule;
  placed.step_ns = step_ns;
  placed.plan = *std::move(plan);
  placed.arena_bytes = model.problem->addresses
                           ? placed.plan.arena_bytes
                           : FindLifetimes(model, schedule).peak_bytes;
  return placed;
}

}  // namespace loadline::planner
