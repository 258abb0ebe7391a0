// LowerSchedule, and the bytes of what came out. Tested through every plan of
// solve_test.cc.
#include "planner/layout/laid_out_schedule.h"

#include <algorithm>
#include <utility>

#include "planner/base/status_macros.h"
#include "planner/layout/lower_schedule.h"
#include "planner/schedule/simulate.h"

namespace loadline::planner {
namespace {

LaidOutSchedule MakePlaced(const SearchModel& model, const Schedule& schedule,
                           double step_ns, Plan plan) {
  LaidOutSchedule placed;
  placed.schedule = schedule;
  placed.step_ns = step_ns;
  placed.arena_bytes = model.problem->addresses
                           ? plan.arena_bytes
                           : FindLifetimes(model, schedule).peak_bytes;
  placed.plan = std::move(plan);
  return placed;
}

}  // namespace

std::optional<LaidOutSchedule> LayOut(const SearchModel& model,
                                      const Schedule& schedule, double step_ns,
                                      const LayOutOptions& options,
                                      int64_t* excess_bytes) {
  LowerScheduleOptions emit;
  emit.budget_bytes = options.budget_bytes;
  emit.pack_work_limit = options.pack_work_limit;
  emit.cancel = options.cancel;
  PackReport report;
  absl::StatusOr<Plan> plan = LowerSchedule(model, schedule, emit, &report);
  if (!plan.ok()) {
    *excess_bytes =
        std::max<int64_t>(1, report.height_bytes - options.budget_bytes);
    return std::nullopt;
  }
  return MakePlaced(model, schedule, step_ns, *std::move(plan));
}

absl::StatusOr<LaidOutSchedule> LayOutTightest(const SearchModel& model,
                                               const Schedule& schedule,
                                               double step_ns,
                                               int64_t pack_work_limit) {
  const Lifetimes lives = FindLifetimes(model, schedule);
  if (!lives.valid) {
    return absl::InvalidArgumentError(
        "the problem's given order reads a value before it is made or after "
        "its update");
  }
  LowerScheduleOptions emit;
  emit.pack_work_limit = pack_work_limit;
  emit.budget_bytes = lives.peak_bytes;
  emit.tightest = true;
  LOADLINE_ASSIGN_OR_RETURN(Plan plan, LowerSchedule(model, schedule, emit));
  return MakePlaced(model, schedule, step_ns, std::move(plan));
}

}  // namespace loadline::planner
