// LowerSchedule, and the bytes of its result. Tested in
// laid_out_schedule_test.cc and through every plan of solve_test.cc.
#include "planner/layout/laid_out_schedule.h"

#include <algorithm>
#include <utility>

#include "planner/base/status_macros.h"
#include "planner/layout/lower_schedule.h"
#include "planner/schedule/simulate.h"

namespace loadline::planner {
namespace {

LaidOutSchedule MakeLaidOut(const SearchModel& model, const Schedule& schedule,
                            double step_ns, Plan plan) {
  LaidOutSchedule laid_out;
  laid_out.schedule = schedule;
  laid_out.step_ns = step_ns;
  laid_out.arena_bytes = model.problem->addresses
                             ? plan.arena_bytes
                             : FindLifetimes(model, schedule).peak_bytes;
  laid_out.plan = std::move(plan);
  return laid_out;
}

}  // namespace

std::optional<LaidOutSchedule> LayOut(const SearchModel& model,
                                      const Schedule& schedule, double step_ns,
                                      const LayOutOptions& options,
                                      int64_t* excess_bytes) {
  LowerScheduleOptions lower;
  lower.budget_bytes = options.budget_bytes;
  lower.pack_work_limit = options.pack_work_limit;
  lower.stop = options.stop;
  PackReport report;
  absl::StatusOr<Plan> plan = LowerSchedule(model, schedule, lower, &report);
  if (!plan.ok()) {
    *excess_bytes =
        std::max<int64_t>(1, report.height_bytes - options.budget_bytes);
    return std::nullopt;
  }
  return MakeLaidOut(model, schedule, step_ns, *std::move(plan));
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
  LowerScheduleOptions lower;
  lower.pack_work_limit = pack_work_limit;
  lower.budget_bytes = lives.peak_bytes;
  lower.tightest = true;
  LOADLINE_ASSIGN_OR_RETURN(Plan plan, LowerSchedule(model, schedule, lower));
  return MakeLaidOut(model, schedule, step_ns, std::move(plan));
}

}  // namespace loadline::planner
