// A point of a sweep: a budget or a size, its plan and its measurement.
#ifndef LOADLINE_TOOLS_PIPELINE_PARETO_POINT_H_
#define LOADLINE_TOOLS_PIPELINE_PARETO_POINT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "planner/problem/plan.h"
#include "tools/pipeline/measure_plan.h"

namespace loadline::tools {

// `measured` is empty if nothing was run.
struct ParetoPoint {
  std::string axis;  // the dimension that is varied; empty: none
  int64_t size = 0;  // of that dimension
  planner::Plan plan;
  std::vector<Measured> measured;  // none or one
};

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_PARETO_POINT_H_
