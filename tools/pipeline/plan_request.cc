// No decisions: the planner makes them (planner/solve). Tested by
// tests/tools/pipeline/plan_request_test.cc and
// tests/tools/report/estimate_test.cc.
#include "tools/pipeline/plan_request.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "spdlog/spdlog.h"
#include "tools/cli/device_names.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/solve_progress.h"
#include "tools/cli/units.h"
#include "tools/pipeline/structures.h"

namespace loadline::tools {

planner::SolveOptions PermittedBy(const PlanFlags& flags) {
  planner::SolveOptions options;
  options.allow_recompute = !flags.no_recompute;
  options.allow_offload = !flags.no_offload;
  options.permissions.codecs = !flags.no_stash;
  options.permissions.lossy = flags.max_gradient_error > 0;
  return options;
}

absl::StatusOr<PlanRequest> ReadPlanRequest(const PlanFlags& flags,
                                            const PlanPurpose& purpose) {
  PlanRequest request;
  if (!flags.budget.empty()) {
    LOADLINE_ASSIGN_OR_RETURN(request.budget, ParseBudget(flags.budget));
    request.budget->counts_reserved = true;  // if it is a GPU's
  }
  request.on_gpu = flags.device == kCuda;
  request.options = PermittedBy(flags);
  request.options.seed = flags.plan_seed;
  request.options.threads = flags.threads;
  request.options.effort = purpose.effort;
  request.options.work_limit = purpose.work_limit;
  if (!flags.time_limit.empty()) {
    LOADLINE_ASSIGN_OR_RETURN(request.options.time_limit,
                              ParseTimeLimit(flags.time_limit));
  }
  return request;
}

int64_t ReservedInBudget(const planner::Problem& problem, bool on_gpu) {
  return problem.machine.has_value() && (on_gpu || problem.machine->nominal)
             ? problem.machine->reserved_bytes
             : 0;
}

absl::StatusOr<int64_t> RequestedBytes(const planner::Problem& problem,
                                       const PlanRequest& request,
                                       const planner::Plan& keep_everything) {
  if (!request.budget.has_value()) return keep_everything.budget_bytes;
  planner::Budget budget = *request.budget;
  budget.counts_reserved =
      budget.counts_reserved && ReservedInBudget(problem, request.on_gpu) > 0;
  auto bytes = planner::BytesOf(budget, problem, keep_everything);
  if (absl::IsResourceExhausted(bytes.status())) {
    return CannotFitError(bytes.status().message());
  }
  return bytes;
}

absl::StatusOr<planner::Plan> SolveFor(const planner::Problem& problem,
                                       const PlanRequest& request,
                                       const planner::Plan& keep_everything,
                                       const std::atomic<bool>* cancel) {
  planner::SolveOptions options = request.options;
  options.cancel = cancel;
  std::optional<SearchLog> log;
  if (spdlog::should_log(spdlog::level::info)) {
    log.emplace([](const std::string& row) { spdlog::info(row); });
    options.progress = [&log](const planner::Progress& progress) {
      log->Improved(progress);
    };
  }
  const bool smallest =
      request.budget.has_value() &&
      request.budget->kind == planner::Budget::Kind::kSmallest;
  if (!smallest) {
    LOADLINE_ASSIGN_OR_RETURN(
        options.budget_bytes,
        RequestedBytes(problem, request, keep_everything));
  }
  absl::StatusOr<planner::Plan> plan =
      smallest ? planner::SolveSmallest(problem, options)
               : planner::Solve(problem, options);
  // A search that was stopped says nothing of what it would have found.
  if (!plan.ok() && cancel != nullptr &&
      cancel->load(std::memory_order_relaxed)) {
    const auto found = planner::InfeasibilityOf(plan.status());
    return absl::CancelledError(
        absl::StrCat("interrupted before a plan was found",
                     found.has_value() && found->smallest_met_bytes > 0
                         ? absl::StrCat("; the smallest budget met so far is ",
                                        FormatBytes(found->smallest_met_bytes))
                         : ""));
  }
  if (absl::IsDeadlineExceeded(plan.status())) {
    return Appended(plan.status(), "; a larger --time-limit may find one");
  }
  return plan;
}

absl::StatusOr<planner::Plan> SolveFor(const planner::Problem& problem,
                                       const StepFlags& flags,
                                       const planner::Plan& keep_everything,
                                       const std::atomic<bool>* cancel) {
  LOADLINE_ASSIGN_OR_RETURN(const PlanRequest request,
                            ReadPlanRequest(flags.plan, flags.purpose));
  return SolveFor(problem, request, keep_everything, cancel);
}

}  // namespace loadline::tools
