// A training step in the pipeline: its flags, and the results so far.
#ifndef LOADLINE_TOOLS_PIPELINE_PLANNED_STEP_H_
#define LOADLINE_TOOLS_PIPELINE_PLANNED_STEP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/graph.h"
#include "passes/compress/add_masks.h"
#include "planner/problem/machine.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"
#include "planner/solve/solve.h"
#include "tools/cli/flags.h"

namespace loadline::tools {

// What the verb decides and no flag changes.
struct PlanPurpose {
  // The plan is run on this machine, so its profile has to be this machine's.
  bool runs_here = false;
  planner::Effort effort = planner::Effort::kNormal;
  std::optional<int64_t> work_limit;  // SolveOptions::work_limit
  // Of a recipe's phase; none without a recipe.
  std::optional<std::vector<passes::MaskedAxis>> masks;
};

struct StepFlags {
  ModelFlags model;
  LossFlags loss;
  OptimizerFlags optimizer;
  PlanFlags plan;
  PlanPurpose purpose;
  // The names of the flags that the user gave, for verbs that also accept files
  // which read only some of them (planner_file_flags.h).
  std::vector<std::string> given;
};

// What lossy codecs are offered for (passes::MakeProblemOptions).
struct GradientErrors {
  std::vector<double> of_values;  // by value of the graph; empty: none offered
  double most = 0;
};

// What a search found for one structure: its step time or bytes, or why there
// is no plan.
struct TriedStructure {
  int64_t micro_batches = 1;
  std::string outcome;
  std::vector<std::string> splits;  // CHAIN=N
};

struct PlannedStep {
  models::Graph graph;  // the training step
  GradientErrors gradient_errors;
  // The model's own parameters and statistics, without optimizer state.
  std::vector<std::string> model_tensors;
  planner::Machine machine;
  planner::Problem problem;
  planner::Plan keep_everything;  // the baseline, 100 %
  planner::Plan plan;
  std::vector<TriedStructure> tried;  // --micro-batches auto, --split auto
};

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_PLANNED_STEP_H_
