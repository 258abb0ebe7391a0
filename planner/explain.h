// One short sentence for every value of a plan: what was done with it and why.
#ifndef LOADLINE_PLANNER_EXPLAIN_H_
#define LOADLINE_PLANNER_EXPLAIN_H_

#include <vector>

#include "planner/plan.h"
#include "planner/schedule.h"

namespace loadline::planner {

// Requires a valid schedule. One decision per value that has a buffer.
std::vector<Decision> Explain(const Model& model, const Schedule& schedule);

// "12.0 MB", "0.31 ms".
std::string FormatBytes(int64_t bytes);
std::string FormatNs(double ns);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_EXPLAIN_H_
