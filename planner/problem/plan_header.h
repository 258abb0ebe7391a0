// What a plan file says of itself, without the problem that its lists need.
#ifndef LOADLINE_PLANNER_PROBLEM_PLAN_HEADER_H_
#define LOADLINE_PLANNER_PROBLEM_PLAN_HEADER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/problem/plan.h"

namespace loadline::planner {

// A loadline.plan/1 without its lists: problem, prediction, bounds and bytes.
absl::StatusOr<Plan> PlanHeaderFromJson(absl::string_view json);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_PROBLEM_PLAN_HEADER_H_
