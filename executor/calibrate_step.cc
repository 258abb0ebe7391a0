// What a node finds in the caches, and whether the threads that help it are
// still awake, depends on the nodes before it: small operators measured alone
// took half as long again as in their step. Tested in
// tests/executor/measure_test.cc.
#include "executor/calibrate_step.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "executor/program.h"
#include "executor/step_times.h"
#include "planner/status_macros.h"

namespace loadline::executor {
namespace {

// So small that the parameters stay what they are.
constexpr float kLearningRate = 1e-6f;

}  // namespace

absl::StatusOr<std::map<std::string, int64_t>> CalibrateStep(
    const models::Graph& graph, const planner::Problem& problem,
    const planner::Plan& plan, Device& device,
    const CalibrateOptions& options) {
  LOADLINE_ASSIGN_OR_RETURN(
      const std::unique_ptr<Program> program,
      Load(graph, problem, plan, device, {.trace = true}));
  std::vector<std::vector<std::byte>> contents;
  std::vector<const std::byte*> inputs;
  for (models::ValueId id : graph.inputs) {
    contents.push_back(MildContents(graph.value(id).type));
    inputs.push_back(contents.back().data());
  }
  StepTimes times(graph, problem, plan);
  int64_t runs = options.runs;
  for (int64_t run = 0; run <= runs; ++run) {
    if (options.stop != nullptr && options.stop->load()) {
      return absl::CancelledError("calibration was stopped");
    }
    LOADLINE_RETURN_IF_ERROR(program->Run(
        {.learning_rate = kLearningRate, .step = run + 1, .seed = 1}, inputs));
    if (run == 0) {  // pages and caches are cold
      int64_t step_ns = 1;
      for (const TraceSpan& span : device.trace()) {
        step_ns = std::max(step_ns, span.end_ns);
      }
      runs = std::max(runs, options.least_ns / step_ns);
      continue;
    }
    times.Add(device.trace());
    if (options.progress) options.progress(run, runs);
  }
  return times.Operators();
}

}  // namespace loadline::executor
