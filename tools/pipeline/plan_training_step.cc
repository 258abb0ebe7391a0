// Each arrow is one call into another room; this file only turns flags into
// options. Tested by tests/end_to_end.
#include "tools/pipeline/plan_training_step.h"

#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "passes/cost_model.h"
#include "passes/make_problem.h"
#include "passes/structure.h"
#include "passes/training_pipeline.h"
#include "planner/base/status_macros.h"
#include "spdlog/spdlog.h"
#include "tools/pipeline/choose_structure.h"
#include "tools/pipeline/device.h"
#include "tools/pipeline/gradient_errors.h"
#include "tools/pipeline/import_model.h"
#include "tools/pipeline/lora.h"
#include "tools/pipeline/loss_options.h"
#include "tools/pipeline/machine_profile.h"
#include "tools/pipeline/optimizer_options.h"
#include "tools/pipeline/plan_files.h"
#include "tools/pipeline/plan_request.h"
#include "tools/pipeline/planner_file_flags.h"

namespace loadline::tools {
namespace {

passes::PassOptions PassOptionsFor(const PlanFlags& flags) {
  passes::PassOptions options;
  options.disabled.insert(flags.disabled_passes.begin(),
                          flags.disabled_passes.end());
  options.dump_dir = flags.dump_passes;
  options.log = [](absl::string_view name, double seconds, size_t before,
                   size_t after) {
    spdlog::debug("pass {}: {} -> {} nodes, {:.1f} ms", std::string(name),
                  before, after, seconds * 1e3);
  };
  return options;
}

std::vector<std::string> TensorsOf(const models::Graph& graph) {
  std::vector<std::string> names;
  for (const models::Value& value : graph.values) {
    if (value.kind == models::ValueKind::kParameter ||
        value.kind == models::ValueKind::kState) {
      names.push_back(value.name);
    }
  }
  return names;
}

}  // namespace

absl::StatusOr<PlannedStep> PlanTrainingStep(const StepFlags& flags,
                                             executor::Device& device,
                                             const std::atomic<bool>* cancel,
                                             const BeforeMeasuring& check) {
  if (IsAuto(flags.plan)) {
    return PlanBestStructure(flags, device, cancel, check);
  }
  LOADLINE_ASSIGN_OR_RETURN(PlannedStep step,
                            PoseTrainingStep(flags, device, cancel, check));
  // The planner hands out verified plans only.
  auto plan = SolveFor(step.problem, flags, step.keep_everything, cancel);
  if (!plan.ok() && !flags.plan.no_split) {
    return WithAdvice(plan.status(), step, flags);
  }
  LOADLINE_ASSIGN_OR_RETURN(step.plan, std::move(plan));
  return step;
}

absl::StatusOr<PlannedStep> PoseTrainingStep(const StepFlags& flags,
                                             executor::Device& device,
                                             const std::atomic<bool>* cancel,
                                             const BeforeMeasuring& check) {
  NoteIgnoredStructure(flags.plan);
  LOADLINE_ASSIGN_OR_RETURN(models::Imported model, ImportToTrain(flags));
  return PoseGraph(std::move(model.graph), flags, device, cancel, check);
}

absl::StatusOr<PlannedStep> PoseGraph(models::Graph model,
                                      const StepFlags& flags,
                                      executor::Device& device,
                                      const std::atomic<bool>* cancel,
                                      const BeforeMeasuring& check) {
  PlannedStep step;
  step.model_tensors = TensorsOf(model);
  LOADLINE_ASSIGN_OR_RETURN(step.graph, BuildStep(std::move(model), flags));
  if (check) LOADLINE_RETURN_IF_ERROR(check(step.graph));
  LOADLINE_ASSIGN_OR_RETURN(step.machine,
                            MachineFor(flags, step.graph, cancel));
  LOADLINE_ASSIGN_OR_RETURN(step.gradient_errors,
                            GradientErrorsFor(flags, step.graph));
  LOADLINE_ASSIGN_OR_RETURN(
      step.problem, PoseStep(step.graph, flags.model.model, step.machine,
                             device, step.gradient_errors));
  LOADLINE_ASSIGN_OR_RETURN(step.keep_everything,
                            planner::KeepEverything(step.problem));
  return step;
}

absl::StatusOr<PlannedStep> ReadProblemStep(const std::string& path) {
  PlannedStep step;
  LOADLINE_ASSIGN_OR_RETURN(step.problem, ReadProblemFile(path));
  LOADLINE_ASSIGN_OR_RETURN(step.keep_everything,
                            planner::KeepEverything(step.problem));
  return step;
}

absl::StatusOr<PlannedStep> ReadProblemStepFor(const StepFlags& flags) {
  LOADLINE_ASSIGN_OR_RETURN(PlannedStep step,
                            ReadProblemStep(flags.model.model));
  LOADLINE_RETURN_IF_ERROR(CheckForProblemFile(flags, step.problem));
  return step;
}

bool IsPlannerFile(const std::string& path) {
  return absl::EndsWith(path, ".json");
}

absl::StatusOr<PlannedStep> PoseOrReadStep(const StepFlags& flags,
                                           const std::atomic<bool>* cancel) {
  if (IsPlannerFile(flags.model.model)) {
    return ReadProblemStepFor(flags);
  }
  LOADLINE_ASSIGN_OR_RETURN(const auto device, MakeDevice(flags.plan.device));
  return PoseTrainingStep(flags, *device, cancel);
}

absl::StatusOr<PlannedStep> PlanOrReadStep(const StepFlags& flags,
                                           const std::atomic<bool>* cancel) {
  if (!IsPlannerFile(flags.model.model)) {
    LOADLINE_ASSIGN_OR_RETURN(const auto device, MakeDevice(flags.plan.device));
    return PlanTrainingStep(flags, *device, cancel);
  }
  LOADLINE_ASSIGN_OR_RETURN(PlannedStep step, ReadProblemStepFor(flags));
  LOADLINE_ASSIGN_OR_RETURN(
      step.plan, SolveFor(step.problem, flags, step.keep_everything, cancel));
  return step;
}

absl::StatusOr<models::Imported> ImportToTrain(const StepFlags& flags) {
  LOADLINE_ASSIGN_OR_RETURN(models::Imported imported,
                            ImportModel(flags.model, /*training=*/true));
  WarnOfLoss(imported.graph, flags.loss);
  return imported;
}

absl::StatusOr<models::Graph> BuildStep(models::Graph model,
                                        const StepFlags& flags) {
  passes::TrainingOptions options;
  LOADLINE_ASSIGN_OR_RETURN(options.loss,
                            LossFor(model, flags.loss, flags.model.model));
  LOADLINE_ASSIGN_OR_RETURN(options.optimizer, OptimizerFor(flags.optimizer));
  options.no_dropout = flags.model.no_dropout;
  LOADLINE_ASSIGN_OR_RETURN(const std::optional<int64_t> parts,
                            MicroBatchesOf(flags.plan));
  options.micro_batches = parts.value_or(1);
  if (flags.plan.micro_batch_statistics) {
    if (parts == 1 && !flags.plan.no_split) {
      return absl::InvalidArgumentError(
          "--allow-micro-batch-statistics: needs --micro-batches of 2 or more, "
          "or auto");
    }
    options.statistics = models::BatchStatistics::kOfPart;
  }
  LOADLINE_ASSIGN_OR_RETURN(
      options.precision, passes::PrecisionFromName(flags.optimizer.precision));
  options.whole_updates = flags.purpose.masks.has_value();
  if (options.whole_updates) options.masks = *flags.purpose.masks;
  LOADLINE_ASSIGN_OR_RETURN(options.lora,
                            LoraFor(flags.optimizer, flags.model));
  LOADLINE_ASSIGN_OR_RETURN(auto splits, SplitsOf(flags.plan));
  if (splits.has_value()) options.splits = *std::move(splits);
  return passes::BuildTrainingStep(std::move(model), options,
                                   PassOptionsFor(flags.plan));
}

absl::StatusOr<planner::Machine> MachineFor(const StepFlags& flags,
                                            const models::Graph& graph,
                                            const std::atomic<bool>* cancel) {
  const PlanFlags& plan = flags.plan;
  if (plan.calibrate) {
    return CalibratedProfile(flags, graph, cancel);
  }
  LOADLINE_ASSIGN_OR_RETURN(planner::Machine machine,
                            LoadProfile(plan.device, plan.machine));
  if (flags.purpose.runs_here) LOADLINE_RETURN_IF_ERROR(CheckIsHere(machine));
  return machine;
}

absl::StatusOr<planner::Problem> PoseStep(const models::Graph& graph,
                                          const std::string& name,
                                          const planner::Machine& machine,
                                          executor::Device& device,
                                          const GradientErrors& errors) {
  // Workspaces and times are those of the algorithms that were measured.
  device.SetAlgorithms(machine.algorithms);
  passes::MakeProblemOptions options;
  options.name = passes::NameWithStructure(
      std::filesystem::path(name).stem().string(), graph);
  // The measured times are in the nodes already; the rest is what plans need.
  options.machine = machine;
  options.machine->ops.clear();
  options.machine->algorithms.clear();
  options.machine->provisional.clear();
  options.gradient_errors = errors.of_values;
  options.max_gradient_error = errors.most;
  const bool elsewhere = IsElsewhere(machine, device.is_host());
  options.cost = passes::CostFromMachine(
      machine,
      [&device, elsewhere](const models::Graph& g, const models::Node& node)
          -> absl::StatusOr<int64_t> {
        if (elsewhere) return 0;
        LOADLINE_ASSIGN_OR_RETURN(const auto kernel, device.Prepare(g, node));
        return kernel->workspace_bytes();
      });
  return passes::MakeProblem(graph, options);
}

absl::Status PoseAgain(const StepFlags& flags, planner::Machine machine,
                       executor::Device& device, PlannedStep* step) {
  step->machine = std::move(machine);
  LOADLINE_ASSIGN_OR_RETURN(
      step->problem, PoseStep(step->graph, flags.model.model, step->machine,
                              device, step->gradient_errors));
  LOADLINE_ASSIGN_OR_RETURN(
      step->keep_everything,
      planner::Reprice(step->problem, std::move(step->keep_everything),
                       PermittedBy(flags.plan)));
  return absl::OkStatus();
}

}  // namespace loadline::tools
