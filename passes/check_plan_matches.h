// The bridge back: checks that a plan, made elsewhere perhaps, may run this
// graph.
//
//   problem.json, plan.json, model.onnx  ->  ok, or the first difference
#ifndef LOADLINE_PASSES_CHECK_PLAN_MATCHES_H_
#define LOADLINE_PASSES_CHECK_PLAN_MATCHES_H_

#include "absl/status/status.h"
#include "models/graph.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"

namespace loadline::passes {

// OK if `problem` is what MakeProblem makes of `graph`, up to prices, names,
// machine, alignment and what the problem leaves unused (fewer in-place pairs,
// less recomputation, fewer copies), and planner::Verify accepts the plan for
// it. Otherwise FailedPrecondition that names the first difference, or what
// Verify says. Whether workspaces, codecs and variants of the plan suit the
// device is the executor's to check.
absl::Status CheckPlanMatches(const models::Graph& graph,
                              const planner::Problem& problem,
                              const planner::Plan& plan);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_CHECK_PLAN_MATCHES_H_
