// What a node finds in the caches, and whether the threads that help it are
// still awake, depends on the nodes before it: small operators measured alone
// took half as long again as in their step. Tested in
// tests/executor/measure_test.cc.
#include "executor/calibrate_step.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "executor/median.h"
#include "executor/program.h"
#include "models/ops/operator.h"
#include "planner/status_macros.h"

namespace loadline::executor {
namespace {

// So small that the parameters stay what they are.
constexpr float kLearningRate = 1e-6f;

// The operator of each step of the plan; empty: a copy.
std::vector<std::string> KeysOf(const models::Graph& graph,
                                const planner::Problem& problem,
                                const planner::Plan& plan) {
  std::vector<std::string> keys;
  for (const planner::Step& step : plan.steps) {
    keys.emplace_back();
    if (step.kind != planner::StepKind::kNode) continue;
    const auto node =
        static_cast<models::NodeId>(problem.node(step.node).file_id);
    keys.back() = models::OperatorKey(graph, graph.node(node));
  }
  return keys;
}

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
  const std::vector<std::string> keys = KeysOf(graph, problem, plan);
  std::map<std::string, std::vector<int64_t>> times_ns;
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
    for (size_t s = 0; s < keys.size(); ++s) {
      if (keys[s].empty()) continue;
      const TraceSpan& span = device.trace()[s];
      times_ns[keys[s]].push_back(span.end_ns - span.start_ns);
    }
    if (options.progress) options.progress(run, runs);
  }
  std::map<std::string, int64_t> ops;
  for (auto& [key, ns] : times_ns) ops[key] = MedianNs(std::move(ns));
  return ops;
}

}  // namespace loadline::executor
