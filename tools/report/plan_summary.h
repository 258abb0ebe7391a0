// What a plan trades, as text and as JSON.
#ifndef LOADLINE_TOOLS_REPORT_PLAN_SUMMARY_H_
#define LOADLINE_TOOLS_REPORT_PLAN_SUMMARY_H_

#include <string>

#include "nlohmann/json_fwd.hpp"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"

namespace loadline::tools {

// The table that `plan` and `run` print: keep-everything beside the plan, what
// was recomputed and copied, host bytes, bounds, verdict. At most 80 columns.
std::string PlanTable(const planner::Problem& problem,
                      const planner::Plan& keep_everything,
                      const planner::Plan& plan);

// Does it fit, and what does it cost; and, where so, that the machine is too
// small for it or its times are nominal.
std::string Verdict(const planner::Problem& problem,
                    const planner::Plan& keep_everything,
                    const planner::Plan& plan);

nlohmann::ordered_json PlanSummaryJson(const planner::Problem& problem,
                                       const planner::Plan& keep_everything,
                                       const planner::Plan& plan);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_REPORT_PLAN_SUMMARY_H_
