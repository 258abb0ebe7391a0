// A model loaded for evaluation.
#ifndef LOADLINE_TOOLS_PIPELINE_LOAD_EVALUATION_H_
#define LOADLINE_TOOLS_PIPELINE_LOAD_EVALUATION_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "executor/device/device.h"
#include "executor/program/program.h"
#include "models/graph.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"
#include "tools/cli/flags.h"

namespace loadline::tools {

// A program for one batch size, with everything that it refers to.
struct LoadedEvaluation {
  models::Graph model;  // as imported
  models::Graph graph;  // with the loss
  planner::Problem problem;
  planner::Plan plan;
  std::unique_ptr<executor::Device> device;
  std::unique_ptr<executor::Program> program;
};

// Errors: those of import, planning and loading.
absl::StatusOr<std::unique_ptr<LoadedEvaluation>> LoadEvaluation(
    const ModelFlags& model, const LossFlags& loss, const PlanFlags& plan);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_LOAD_EVALUATION_H_
