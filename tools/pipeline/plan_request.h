// The flags that concern planning, as the planner's own types.
#ifndef LOADLINE_TOOLS_PIPELINE_PLAN_REQUEST_H_
#define LOADLINE_TOOLS_PIPELINE_PLAN_REQUEST_H_

#include <atomic>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"
#include "planner/solve/budget.h"
#include "planner/solve/solve.h"
#include "tools/pipeline/planned_step.h"

namespace loadline::tools {

struct PlanRequest {
  // None: what keeping everything takes.
  std::optional<planner::Budget> budget;
  bool on_gpu = false;            // --device cuda
  planner::SolveOptions options;  // without budget_bytes
};

// Errors: a flag that does not parse.
absl::StatusOr<PlanRequest> ReadPlanRequest(const PlanFlags& flags,
                                            const PlanPurpose& purpose = {});

// Which plans the flags permit, without their budget and limits.
planner::SolveOptions PermittedBy(const PlanFlags& flags);

// Device memory outside the plan that a budget in bytes includes: on a GPU what
// the profile says is reserved.
int64_t ReservedInBudget(const planner::Problem& problem, bool on_gpu);

// The bytes that the request leaves to a plan: see planner::BytesOf, whose
// error becomes the exit code for a budget that cannot be met.
absl::StatusOr<int64_t> RequestedBytes(const planner::Problem& problem,
                                       const PlanRequest& request,
                                       const planner::Plan& keep_everything);

// The plan that was asked for. `cancel` may be null; the log goes to stderr.
absl::StatusOr<planner::Plan> SolveFor(const planner::Problem& problem,
                                       const PlanRequest& request,
                                       const planner::Plan& keep_everything,
                                       const std::atomic<bool>* cancel);
absl::StatusOr<planner::Plan> SolveFor(const planner::Problem& problem,
                                       const StepFlags& flags,
                                       const planner::Plan& keep_everything,
                                       const std::atomic<bool>* cancel);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_PLAN_REQUEST_H_
