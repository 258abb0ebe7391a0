// Operators are timed inside their step, because the nodes before them decide
// what is in the caches and whether worker threads are awake: small operators
// took half as long again when measured alone. On a GPU a traced launch waits
// until the next one is submitted, and a replayed launch does not: on an H100
// the launches of a small GPT took 4.0 ms traced and 2.1 ms replayed. So there
// the step also runs untraced, with its inputs copied as in training, and the
// excess of all launches is divided among them. Tested in
// tests/executor/measure/measure_test.cc.
#include "executor/measure/calibrate_step.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "executor/measure/steady_clock.h"
#include "executor/measure/step_times.h"
#include "executor/program/program.h"
#include "planner/base/median.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {
namespace {

// Small enough that the parameters keep their values.
constexpr float kLearningRate = 1e-6f;
constexpr int kUntracedRuns = 11;  // the median counts

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
  int64_t step = 0;
  const auto run_once = [&]() -> absl::Status {
    if (options.stop != nullptr && options.stop->load()) {
      return absl::CancelledError("calibration was stopped");
    }
    return program->Run(
        {.learning_rate = kLearningRate, .step = ++step, .seed = 1}, inputs);
  };
  StepTimes times(graph, problem, plan);
  int64_t runs = options.runs;
  for (int64_t run = 0; run <= runs; ++run) {
    LOADLINE_RETURN_IF_ERROR(run_once());
    if (run == 0) {  // cold pages and caches
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
  if (device.is_host()) return times.Operators();
  LOADLINE_RETURN_IF_ERROR(device.EnableTrace(0));
  std::vector<int64_t> untraced_ns;
  LOADLINE_RETURN_IF_ERROR(run_once());  // submits the step; later runs replay
  for (int i = 0; i < kUntracedRuns; ++i) {
    const int64_t begin_ns = SteadyNowNs();
    LOADLINE_RETURN_IF_ERROR(run_once());
    untraced_ns.push_back(SteadyNowNs() - begin_ns);
  }
  return times.OperatorsWithin(planner::MedianNs(std::move(untraced_ns)));
}

}  // namespace loadline::executor
