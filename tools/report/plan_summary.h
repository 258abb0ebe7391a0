// Summary of a plan's trade-offs, as text and as JSON.
#ifndef LOADLINE_TOOLS_REPORT_PLAN_SUMMARY_H_
#define LOADLINE_TOOLS_REPORT_PLAN_SUMMARY_H_

#include <string>

#include "nlohmann/json_fwd.hpp"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"

namespace loadline::tools {

// The table that `plan` and `run` print: keep-everything and the plan side by
// side, recomputed and copied bytes, host bytes, bounds, verdict. At most 80
// columns wide.
std::string PlanTable(const planner::Problem& problem,
                      const planner::Plan& keep_everything,
                      const planner::Plan& plan);

// Whether the plan fits and what it costs; also says if the machine has too
// little memory for it or its times are nominal.
std::string Verdict(const planner::Problem& problem,
                    const planner::Plan& keep_everything,
                    const planner::Plan& plan);

nlohmann::ordered_json PlanSummaryJson(const planner::Problem& problem,
                                       const planner::Plan& keep_everything,
                                       const planner::Plan& plan);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_REPORT_PLAN_SUMMARY_H_
