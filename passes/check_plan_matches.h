// Checks that a plan, possibly made on another machine, may run this graph.
//
//   problem.json, plan.json, model.onnx  ->  ok, or the first difference
#ifndef LOADLINE_PASSES_CHECK_PLAN_MATCHES_H_
#define LOADLINE_PASSES_CHECK_PLAN_MATCHES_H_

#include "absl/status/status.h"
#include "models/graph.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"

namespace loadline::passes {

// OK if `problem` equals MakeProblem of `graph` and planner::Verify accepts the
// plan for it. Times, names, machine and alignment may differ, and the problem
// may use less (fewer in-place pairs, less recomputation, fewer copies).
// Otherwise FailedPrecondition, naming another structure of the step
// (structure.h), the first difference or Verify's finding. The executor checks
// whether workspaces, codecs and variants of the plan suit the device.
absl::Status CheckPlanMatches(const models::Graph& graph,
                              const planner::Problem& problem,
                              const planner::Plan& plan);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_CHECK_PLAN_MATCHES_H_
