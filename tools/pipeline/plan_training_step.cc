// Each arrow is one call into another room; this file only turns flags into
// options. Tested by tests/end_to_end.
#include "tools/pipeline/plan_training_step.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "executor/files/array_file.h"
#include "models/onnx/declared_inputs.h"
#include "models/ops/operator.h"
#include "passes/cost_model.h"
#include "passes/make_problem.h"
#include "passes/output_activation.h"
#include "passes/remove_unread_inputs.h"
#include "passes/structure.h"
#include "planner/base/status_macros.h"
#include "spdlog/spdlog.h"
#include "tools/pipeline/batch_axis.h"
#include "tools/pipeline/choose_structure.h"
#include "tools/pipeline/device.h"
#include "tools/pipeline/gradient_errors.h"
#include "tools/pipeline/lora.h"
#include "tools/pipeline/machine_profile.h"
#include "tools/pipeline/plan_files.h"
#include "tools/pipeline/plan_request.h"
#include "tools/pipeline/planner_file_flags.h"

namespace loadline::tools {
namespace {

constexpr int64_t kDefaultBatch = 32;

// "NAME=VALUE" split at the first '='.
absl::StatusOr<std::pair<std::string, std::string>> SplitPair(
    const std::string& flag, const std::string& text) {
  const std::pair<std::string, std::string> pair =
      absl::StrSplit(text, absl::MaxSplits('=', 1));
  if (pair.first.empty() || pair.second.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " '", text, "': expected NAME=VALUE"));
  }
  return pair;
}

absl::StatusOr<int64_t> ParseDimension(const std::string& flag,
                                       const std::string& text) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value) || value <= 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        flag, " '", text, "': expected a whole number above zero"));
  }
  return value;
}

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

// InvalidArgument if the flags have a setting that the optimizer does not read.
// The run would silently ignore it.
absl::Status CheckAllRead(const OptimizerFlags& flags,
                          passes::OptimizerKind kind) {
  using Kind = passes::OptimizerKind;
  const bool adam = kind == Kind::kAdam || kind == Kind::kAdamW;
  const bool betas = adam || kind == Kind::kLion;
  struct Setting {
    absl::string_view flag;
    bool given;
    bool read;
  };
  const Setting settings[] = {
      {"--momentum", flags.momentum.has_value(), kind == Kind::kSgd},
      {"--nesterov", flags.nesterov, kind == Kind::kSgd},
      {"--beta1", flags.beta1.has_value(), betas},
      {"--beta2", flags.beta2.has_value(), betas},
      {"--epsilon", flags.epsilon.has_value(), adam || kind == Kind::kAdagrad},
  };
  for (const Setting& setting : settings) {
    if (setting.given && !setting.read) {
      return absl::InvalidArgumentError(
          absl::StrCat(setting.flag, ": --optimizer ", flags.optimizer,
                       " has no such setting"));
    }
  }
  if (kind == passes::OptimizerKind::kSgd && flags.EffectiveMomentum() == 0 &&
      flags.state_bits != 32) {
    return absl::InvalidArgumentError(
        absl::StrCat(flags.state_bits,
                     "-bit optimizer states: SGD without a momentum has no "
                     "state"));
  }
  return absl::OkStatus();
}

absl::StatusOr<passes::OptimizerOptions> OptimizerFor(
    const OptimizerFlags& flags) {
  passes::OptimizerOptions options;
  LOADLINE_ASSIGN_OR_RETURN(options.kind,
                            passes::OptimizerKindFromName(flags.optimizer));
  options.weight_decay = flags.EffectiveWeightDecay();
  LOADLINE_RETURN_IF_ERROR(CheckAllRead(flags, options.kind));
  options.momentum = flags.EffectiveMomentum();
  options.nesterov = flags.nesterov;
  options.beta1 = flags.EffectiveBeta1();
  options.beta2 = flags.EffectiveBeta2();
  options.epsilon = flags.EffectiveEpsilon();
  options.clip_norm = flags.clip_norm;
  options.average = flags.ema;
  options.state_bits = flags.state_bits;
  options.groups.no_decay = flags.no_decay;
  options.groups.decay_matrices_only = flags.decay_matrices_only;
  for (const std::string& text : flags.lr_scales) {
    LOADLINE_ASSIGN_OR_RETURN(const auto pair, SplitPair("--lr-scale", text));
    double factor = 0;
    if (!absl::SimpleAtod(pair.second, &factor)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--lr-scale '", text, "': expected NAME=FACTOR"));
    }
    options.groups.rates.emplace_back(pair.first, factor);
  }
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

// The type of a batch of targets: classes are i64, values f32, whatever the
// file holds them as.
absl::StatusOr<models::TensorType> TargetType(const std::string& path,
                                              passes::LossKind kind,
                                              int64_t batch) {
  LOADLINE_ASSIGN_OR_RETURN(const std::vector<int64_t> shape,
                            executor::ReadArrayShape(path, "target"));
  models::TensorType type;
  type.dtype = kind == passes::LossKind::kCrossEntropy ? models::DType::kI64
                                                       : models::DType::kF32;
  type.dims = shape;
  if (type.dims.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     ": target: expected one entry per example, found a "
                     "single number"));
  }
  type.dims[0] = batch;
  return type;
}

// The output that the loss is taken of; AddLoss refuses a name that is none.
models::ValueId PredictionOf(const models::Graph& model,
                             const LossFlags& flags) {
  for (models::ValueId id : model.outputs) {
    if (model.value(id).name == flags.output) return id;
  }
  return model.outputs[0];
}

absl::StatusOr<models::Imported> Import(const ModelFlags& flags,
                                        bool training) {
  LOADLINE_ASSIGN_OR_RETURN(const models::ImportOptions options,
                            ImportOptionsFor(flags, training));
  LOADLINE_ASSIGN_OR_RETURN(models::Imported imported,
                            models::ImportOnnx(flags.model, options));
  for (const std::string& warning : imported.warnings) spdlog::warn(warning);
  return imported;
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
    return WithAdvice(plan.status(), step.graph);
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

absl::StatusOr<models::ImportOptions> ImportOptionsFor(const ModelFlags& flags,
                                                       bool training) {
  models::ImportOptions options;
  options.batch = flags.batch;
  options.default_batch = kDefaultBatch;
  options.dropout = !flags.no_dropout;
  options.training = training;
  options.allow_missing_weights =
      true;  // running needs them, planning does not
  options.train = flags.train;
  options.freeze = flags.freeze;
  for (const std::string& text : flags.dims) {
    LOADLINE_ASSIGN_OR_RETURN(const auto pair, SplitPair("--dim", text));
    LOADLINE_ASSIGN_OR_RETURN(options.dims[pair.first],
                              ParseDimension("--dim", pair.second));
  }
  for (const std::string& text : flags.input_shapes) {
    LOADLINE_ASSIGN_OR_RETURN(const auto pair,
                              SplitPair("--input-shape", text));
    for (absl::string_view dim : absl::StrSplit(pair.second, 'x')) {
      LOADLINE_ASSIGN_OR_RETURN(
          const int64_t value,
          ParseDimension("--input-shape", std::string(dim)));
      options.input_shapes[pair.first].push_back(value);
    }
  }
  return options;
}

absl::Status CheckBatch(const ModelFlags& flags) {
  LOADLINE_ASSIGN_OR_RETURN(const models::ImportOptions options,
                            ImportOptionsFor(flags, /*training=*/false));
  if (!options.batch.has_value() ||
      (options.dims.empty() && options.input_shapes.empty())) {
    return absl::OkStatus();
  }
  LOADLINE_ASSIGN_OR_RETURN(const std::vector<models::DeclaredInput> inputs,
                            models::ReadDeclaredInputs(flags.model, options));
  std::string other;
  for (const models::DeclaredInput& input : inputs) {
    if (!input.axes.has_value() || input.axes->empty()) continue;
    const models::DeclaredAxis& axis = input.axes->front();
    const auto size = axis.size.has_value()
                          ? axis.size
                          : models::GivenSize(input, 0, options);
    if (size == options.batch) return absl::OkStatus();
    if (axis.size.has_value() || !other.empty()) continue;
    other = options.input_shapes.count(input.name) > 0
                ? absl::StrCat("--input-shape makes the first axis of '",
                               input.name, "' ", *size)
                : absl::StrCat("--dim ", axis.name, "=", *size,
                               " is the first axis of '", input.name, "'");
  }
  if (other.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--batch ", *options.batch, ": ", other, "; give one of them"));
}

absl::StatusOr<models::Imported> ImportModel(const ModelFlags& flags,
                                             bool training) {
  LOADLINE_RETURN_IF_ERROR(CheckBatch(flags));
  return Import(flags, training);
}

std::string LossWarning(const models::Graph& model, const LossFlags& flags) {
  const auto loss = passes::LossKindFromName(flags.loss);
  if (!loss.ok() || model.outputs.empty()) return "";
  return passes::OutputActivationWarning(model, PredictionOf(model, flags),
                                         *loss);
}

absl::StatusOr<models::Imported> ImportToTrain(const StepFlags& flags) {
  LOADLINE_ASSIGN_OR_RETURN(models::Imported imported,
                            ImportModel(flags.model, /*training=*/true));
  const std::string warning = LossWarning(imported.graph, flags.loss);
  if (!warning.empty()) spdlog::warn(warning);
  return imported;
}

absl::StatusOr<models::Imported> ImportModelAt(const ModelFlags& flags,
                                               int64_t batch, bool training) {
  ModelFlags at = flags;
  at.batch = batch;
  if (flags.dims.empty() && flags.input_shapes.empty()) {
    return Import(at, training);
  }
  LOADLINE_ASSIGN_OR_RETURN(const models::ImportOptions given,
                            ImportOptionsFor(flags, training));
  LOADLINE_ASSIGN_OR_RETURN(const std::vector<models::DeclaredInput> inputs,
                            models::ReadDeclaredInputs(flags.model, given));
  std::map<std::string, std::vector<int64_t>> shapes = given.input_shapes;
  std::optional<int64_t> whole;  // the batch of the flags
  for (const models::DeclaredInput& input : inputs) {
    if (!input.axes.has_value() || input.axes->empty()) continue;
    const models::DeclaredAxis& axis = input.axes->front();
    if (axis.size.has_value()) continue;
    const std::optional<int64_t> size = models::GivenSize(input, 0, given);
    if (!whole.has_value()) whole = size;
    if (size != whole) continue;
    if (given.input_shapes.count(input.name) > 0) {
      shapes[input.name][0] = batch;
    } else if (given.dims.count(axis.name) > 0) {
      at.dims.push_back(absl::StrCat(axis.name, "=", batch));
    }
  }
  at.input_shapes.clear();
  for (const auto& [name, shape] : shapes) {
    at.input_shapes.push_back(
        absl::StrCat(name, "=", absl::StrJoin(shape, "x")));
  }
  return Import(at, training);
}

absl::StatusOr<LossFlags> WithGraphsOutputName(const models::Graph& model,
                                               LossFlags flags,
                                               const std::string& path) {
  if (flags.output.empty() && model.outputs.size() < 2) return flags;
  LOADLINE_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                            models::ReadDeclaredOutputs(path, {}));
  if (flags.output.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the model has several outputs (", absl::StrJoin(names, ", "),
        "): name the one that the loss is taken of with --output-name"));
  }
  const auto found = std::find(names.begin(), names.end(), flags.output);
  const auto at = static_cast<size_t>(found - names.begin());
  if (at < model.outputs.size()) {
    flags.output = model.value(model.outputs[at]).name;
    return flags;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--output-name: the model has no output named '", flags.output,
      "'; its outputs: ", absl::StrJoin(names, ", ")));
}

absl::Status CheckBatchAxes(const models::Graph& model, const LossFlags& flags,
                            const std::string& path) {
  LOADLINE_ASSIGN_OR_RETURN(const models::DeclaredModel declared,
                            models::ReadDeclared(path, {}));
  LOADLINE_RETURN_IF_ERROR(CheckBatchOfInputs(declared, model));
  if (flags.loss == "model" || model.outputs.empty()) return absl::OkStatus();
  const auto found = std::find(model.outputs.begin(), model.outputs.end(),
                               PredictionOf(model, flags));
  return CheckBatchOfPrediction(
      declared, static_cast<size_t>(found - model.outputs.begin()),
      flags.class_axis);
}

absl::StatusOr<passes::LossOptions> LossFor(const models::Graph& model,
                                            const LossFlags& given,
                                            const std::string& path) {
  LOADLINE_ASSIGN_OR_RETURN(const LossFlags flags,
                            WithGraphsOutputName(model, given, path));
  passes::LossOptions options;
  LOADLINE_ASSIGN_OR_RETURN(options.kind, passes::LossKindFromName(flags.loss));
  options.class_axis = flags.class_axis;
  options.label_smoothing = flags.label_smoothing;
  options.class_weights.assign(flags.class_weights.begin(),
                               flags.class_weights.end());
  options.delta = flags.huber_delta.value_or(1);
  if (flags.huber_delta.has_value() &&
      options.kind != passes::LossKind::kHuber) {
    return absl::InvalidArgumentError("--huber-delta: needs --loss huber");
  }
  if (flags.class_axis.has_value() &&
      options.kind != passes::LossKind::kCrossEntropy) {
    return absl::InvalidArgumentError(
        "--class-axis: needs --loss cross_entropy; other losses have no "
        "classes");
  }
  if (model.inputs.empty() || model.outputs.empty()) {
    return absl::InvalidArgumentError("the model has no input or no output");
  }
  if (!flags.output.empty()) options.prediction = flags.output;
  if (!flags.data.empty()) {
    LOADLINE_RETURN_IF_ERROR(CheckBatchAxes(model, flags, path));
  }
  const std::vector<models::ValueId> inputs =
      passes::InputsRead(model, {PredictionOf(model, flags)});
  // Another model's data would be blamed for its target.
  for (const models::ValueId input : inputs) {
    if (flags.data.empty()) break;
    LOADLINE_RETURN_IF_ERROR(
        executor::OpenArray(flags.data, model.value(input).name).status());
  }
  if (options.kind == passes::LossKind::kModel) return options;
  if (!flags.data.empty()) {
    const models::TensorType& input = model.value(inputs[0]).type;
    if (input.dims.empty()) {
      return absl::InvalidArgumentError(
          "the model's first input has no axis for the batch");
    }
    LOADLINE_ASSIGN_OR_RETURN(
        options.target, TargetType(flags.data, options.kind, input.dims[0]));
    return options;
  }
  options.target = model.value(PredictionOf(model, flags)).type;
  if (options.kind != passes::LossKind::kCrossEntropy) return options;
  const int64_t rank = options.target.rank();
  if (rank == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the model's output ", options.target.ToString(),
        " is one number and has no classes: if it is the loss, give --loss "
        "model"));
  }
  int64_t axis = options.class_axis.value_or(-1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--class-axis ", flags.class_axis.value_or(-1), ": the model's output ",
        options.target.ToString(), " has no such axis"));
  }
  options.class_axis = axis;
  options.target.dtype = models::DType::kI64;
  options.target.dims.erase(options.target.dims.begin() + axis);
  return options;
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
