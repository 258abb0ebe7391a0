// A training step in the pipeline: its flags, and the results so far.
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
  // The model's own parameters and statistics, without optimizer state.
  std::vector<std::string> model_tensors;
  planner::Machine machine;
  planner::Problem problem;
  planner::Plan keep_everything;  // the baseline, 100 %
  planner::Plan plan;
};

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_PLANNED_STEP_H_
