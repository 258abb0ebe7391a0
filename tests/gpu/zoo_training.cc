// Uses the command's pipeline, with a machine profile of its own.
#include "tests/gpu/zoo_training.h"

#include <cstdlib>
#include <string>

#include "executor/program/program.h"
#include "executor/train/data.h"
#include "executor/train/train.h"
#include "planner/base/status_macros.h"
#include "planner/problem/machine.h"
#include "tools/pipeline/import_model.h"
#include "tools/pipeline/machine_profile.h"
#include "tools/pipeline/plan_request.h"
#include "tools/pipeline/plan_training_step.h"

namespace loadline {
namespace {

// In a packed run the zoo is not where it was when the test was compiled.
std::string Zoo(const std::string& file) {
  const char* root = std::getenv("LOADLINE_ROOT");
  return (root != nullptr ? std::string(root) : LOADLINE_SOURCE_DIR) +
         "/models/zoo/" + file;
}

planner::Machine MadeUpGpu() {
  planner::Machine machine;
  machine.name = "made-up-gpu";
  machine.device_bytes = int64_t{80} << 30;
  machine.d2h.bytes_per_s = 25e9;
  machine.h2d.bytes_per_s = 25e9;
  machine.d2h.latency_ns = machine.h2d.latency_ns = 2000;
  machine.d2h_h2d_factor = 0.9;
  machine.host_bytes = int64_t{32} << 30;
  machine.rates = planner::Rates{{{"bf16", 4e14}, {"f32", 3e13}},
                                 /*memory_bytes_per_s=*/2e12,
                                 /*launch_ns=*/2000};
  return machine;
}

tools::StepFlags FlagsFor(const ZooRun& run) {
  tools::StepFlags flags;
  flags.model.model = Zoo(run.family + ".onnx");
  flags.model.batch = run.batch;
  flags.loss.data =
      Zoo(run.family == "gpt" ? "text-train.npz" : "digits-train.npz");
  flags.plan.budget = run.budget;
  flags.plan.no_recompute = run.no_recompute;
  flags.plan.no_offload = run.no_offload;
  flags.plan.micro_batches = std::to_string(run.micro_batches);
  // Any plan will do, but one must be found with any processor's workspaces.
  flags.purpose.work_limit = 1'000'000;
  return flags;
}

}  // namespace

absl::StatusOr<ZooOutcome> TrainZoo(const ZooRun& run,
                                    executor::Device& device) {
  const tools::StepFlags flags = FlagsFor(run);
  LOADLINE_ASSIGN_OR_RETURN(models::Imported model,
                            tools::ImportModel(flags.model, /*training=*/true));
  LOADLINE_ASSIGN_OR_RETURN(const models::Graph graph,
                            tools::BuildStep(std::move(model.graph), flags));
  LOADLINE_ASSIGN_OR_RETURN(
      const planner::Problem problem,
      tools::PoseStep(graph, run.family, MadeUpGpu(), device));
  LOADLINE_ASSIGN_OR_RETURN(planner::Plan plan,
                            planner::KeepEverything(problem));
  if (!run.budget.empty()) {
    LOADLINE_ASSIGN_OR_RETURN(plan,
                              tools::SolveFor(problem, flags, plan, nullptr));
  }
  LOADLINE_ASSIGN_OR_RETURN(const executor::DataSet data,
                            executor::LoadData(flags.loss.data, graph));
  LOADLINE_ASSIGN_OR_RETURN(
      const auto program,
      executor::Load(graph, problem, plan, device, {.poison = run.poison}));
  LOADLINE_ASSIGN_OR_RETURN(
      const executor::TrainResult result,
      executor::Train(
          *program, data,
          {.steps = run.steps, .learning_rate = run.learning_rate, .seed = 7}));
  return ZooOutcome{
      .losses = result.losses,
      .weights_sha256 = result.weights_sha256,
      .planned_bytes = plan.arena_bytes,
      .arena_bytes = result.arena_bytes,
      .device_bytes = result.device_bytes,
      .copied_bytes = plan.predicted.d2h_bytes + plan.predicted.h2d_bytes,
      .recompute_ns = plan.predicted.recompute_ns};
}

}  // namespace loadline
