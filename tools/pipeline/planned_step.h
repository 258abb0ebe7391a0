// A training step on its way through the pipeline: what was asked for, and what
// has been made of it so far.
#ifndef LOADLINE_TOOLS_PIPELINE_PLANNED_STEP_H_
#define LOADLINE_TOOLS_PIPELINE_PLANNED_STEP_H_

#include <string>
#include <vector>

#include "models/graph.h"
#include "planner/problem/machine.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"
#include "tools/cli/flags.h"

namespace loadline::tools {

struct StepFlags {
  ModelFlags model;
  LossFlags loss;
  OptimizerFlags optimizer;
  PlanFlags plan;
};

struct PlannedStep {
  models::Graph graph;  // the training step
  // Parameters and statistics of the model itself, without the optimizer's.
  std::vector<std::string> model_tensors;
  planner::Machine machine;
  planner::Problem problem;
  planner::Plan keep_everything;  // the baseline: what 100 % means
  planner::Plan plan;
};

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_PLANNED_STEP_H_
