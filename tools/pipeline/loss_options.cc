#include "tools/pipeline/loss_options.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "executor/files/array_file.h"
#include "models/onnx/declared_inputs.h"
#include "passes/output_activation.h"
#include "passes/remove_unread_inputs.h"
#include "planner/base/status_macros.h"
#include "spdlog/spdlog.h"
#include "tools/pipeline/batch_axis.h"

namespace loadline::tools {
namespace {

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

}  // namespace

std::string LossWarning(const models::Graph& model, const LossFlags& flags) {
  const auto loss = passes::LossKindFromName(flags.loss);
  if (!loss.ok() || model.outputs.empty()) return "";
  return passes::OutputActivationWarning(model, PredictionOf(model, flags),
                                         *loss);
}

void WarnOfLoss(const models::Graph& model, const LossFlags& flags) {
  const std::string warning = LossWarning(model, flags);
  if (!warning.empty()) spdlog::warn(warning);
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

}  // namespace loadline::tools
