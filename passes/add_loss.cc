// The recipe names the loss, while shapes come from the model and the data
// file. All three can disagree, so most of this file is error messages. Tested
// in tests/passes/add_loss_test.cc.
#include "passes/add_loss.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "passes/loss_nodes.h"
#include "passes/rewrite.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::DType;
using models::Graph;
using models::Phase;
using models::TensorType;
using models::ValueId;

constexpr char kTarget[] = "target";

constexpr std::pair<LossKind, const char*> kNames[] = {
    {LossKind::kCrossEntropy, "cross_entropy"},
    {LossKind::kMse, "mse"},
    {LossKind::kL1, "l1"},
    {LossKind::kHuber, "huber"},
    {LossKind::kBce, "bce_with_logits"},
    {LossKind::kModel, "model"}};

const char* NameOf(LossKind kind) {
  for (const auto& [known, name] : kNames) {
    if (known == kind) return name;
  }
  return "";
}

absl::StatusOr<ValueId> FindPrediction(const Graph& graph,
                                       const LossOptions& options) {
  std::vector<std::string> names;
  for (ValueId id : graph.outputs) {
    const std::string& name = graph.value(id).name;
    if (options.prediction.has_value() && *options.prediction == name) {
      return id;
    }
    names.push_back(name);
  }
  if (options.prediction.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model has no output named '", *options.prediction,
                     "'; its outputs: ", absl::StrJoin(names, ", ")));
  }
  if (names.empty()) {
    return absl::InvalidArgumentError("the model has no output");
  }
  if (names.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the model has several outputs (", absl::StrJoin(names, ", "),
        "): name the one that the loss is taken of with --output-name"));
  }
  return graph.outputs[0];
}

std::vector<int64_t> Without(std::vector<int64_t> dims, int64_t axis) {
  dims.erase(dims.begin() + axis);
  return dims;
}

std::string Shapes(const TensorType& prediction, const TensorType& target) {
  const std::string shapes = absl::StrCat("prediction ", prediction.ToString(),
                                          ", target ", target.ToString());
  if (prediction.dims.empty() || target.dims.empty() ||
      prediction.dims[0] == target.dims[0]) {
    return shapes;
  }
  // Such as a time-major model's.
  return absl::StrCat(shapes, "; the first axis of both must be the batch, ",
                      target.dims[0],
                      ": if it is another axis in the model, export it with "
                      "the batch first");
}

absl::StatusOr<int64_t> CheckNamedAxis(const TensorType& prediction,
                                       const LossOptions& options) {
  const int64_t rank = prediction.rank();
  const int64_t named = *options.class_axis;
  const int64_t axis = named < 0 ? named + rank : named;
  if (axis < 0 || axis >= rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("class axis ", named, " is not an axis of the prediction ",
                     prediction.ToString()));
  }
  if (Without(prediction.dims, axis) != options.target.dims) {
    return absl::InvalidArgumentError(
        absl::StrCat("the prediction without class axis ", named,
                     " does not have the target's shape: ",
                     Shapes(prediction, options.target)));
  }
  return axis;
}

absl::Status CheckDTypes(const TensorType& prediction,
                         const LossOptions& options) {
  if (!IsFloat(prediction.dtype)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a loss needs a floating-point prediction, and this model's is ",
        prediction.ToString()));
  }
  const DType target = options.target.dtype;
  if (options.kind == LossKind::kCrossEntropy && target != DType::kI64 &&
      target != DType::kI32) {
    return absl::InvalidArgumentError(
        absl::StrCat("cross_entropy needs integer targets (i64 or i32): ",
                     Shapes(prediction, options.target)));
  }
  if (options.kind != LossKind::kCrossEntropy && options.target != prediction) {
    return absl::InvalidArgumentError(absl::StrCat(
        NameOf(options.kind), " needs a target of the prediction's type: ",
        Shapes(prediction, options.target)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LossKind> LossKindFromName(absl::string_view name) {
  std::vector<std::string> names;
  for (const auto& [kind, known] : kNames) {
    if (name == known) return kind;
    names.push_back(known);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown loss '", name, "'; losses: ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<int64_t> FindClassAxis(const TensorType& prediction,
                                      const LossOptions& options) {
  if (options.class_axis.has_value()) {
    return CheckNamedAxis(prediction, options);
  }
  std::vector<int64_t> axes;
  for (int64_t axis = prediction.rank() > 1 ? 1 : 0; axis < prediction.rank();
       ++axis) {
    if (Without(prediction.dims, axis) == options.target.dims) {
      axes.push_back(axis);
    }
  }
  if (axes.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no axis of the prediction can be the class axis, the "
                     "one that the target lacks: ",
                     Shapes(prediction, options.target)));
  }
  if (axes.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the class axis is ambiguous (", absl::StrJoin(axes, ", "),
        "): name it with --class-axis; ", Shapes(prediction, options.target)));
  }
  return axes[0];
}

namespace {

absl::Status CheckWeights(const LossOptions& options) {
  if (options.class_weights.empty()) return absl::OkStatus();
  if (options.kind != LossKind::kCrossEntropy) {
    return absl::InvalidArgumentError("only cross_entropy has class weights");
  }
  double sum = 0;
  for (const float weight : options.class_weights) {
    if (!std::isfinite(weight) || weight < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("a class weight of ", weight, "; it must be 0 or more"));
    }
    sum += weight;
  }
  if (sum > 0) return absl::OkStatus();
  return absl::InvalidArgumentError("all class weights are 0");
}

absl::Status CheckNumbers(const LossOptions& options) {
  if (!(options.label_smoothing >= 0) || options.label_smoothing > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a label smoothing of ", options.label_smoothing, "; it is 0 to 1"));
  }
  if (options.label_smoothing > 0 && options.kind != LossKind::kCrossEntropy) {
    return absl::InvalidArgumentError("only cross_entropy has label smoothing");
  }
  LOADLINE_RETURN_IF_ERROR(CheckWeights(options));
  if (!(options.delta > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a delta of ", options.delta, "; it must be above 0"));
  }
  return absl::OkStatus();
}

// The model's own loss as a scalar.
absl::StatusOr<ValueId> ModelLoss(Graph& graph, ValueId output) {
  const TensorType type = graph.value(output).type;
  if (type.dtype != DType::kF32 || type.elements() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--loss model needs an output of one f32 number; '",
                     graph.value(output).name, "' is ", type.ToString()));
  }
  if (type.dims.empty()) return output;
  LOADLINE_ASSIGN_OR_RETURN(
      const auto scalar,
      graph.AddNode("Reshape", "loss", {output}, {{"shape", models::Ints{}}},
                    Phase::kLoss));
  return scalar[0];
}

absl::StatusOr<ValueId> CrossEntropy(Graph& graph, ValueId prediction,
                                     ValueId target, int64_t axis,
                                     const LossOptions& options) {
  std::vector<ValueId> inputs = {prediction, target};
  if (!options.class_weights.empty()) {
    const auto classes = static_cast<int64_t>(options.class_weights.size());
    const TensorType& type = graph.value(prediction).type;
    if (classes != type.dims[static_cast<size_t>(axis)]) {
      return absl::InvalidArgumentError(absl::StrCat(
          classes, " class weights, but the prediction ", type.ToString(),
          " has ", type.dims[static_cast<size_t>(axis)], " classes"));
    }
    inputs.push_back(models::kNoValue);
    inputs.push_back(
        graph.AddConstant("loss.class_weights",
                          models::MakeTensor({DType::kF32, {classes}},
                                             options.class_weights.data())));
  }
  LOADLINE_ASSIGN_OR_RETURN(
      const std::vector<ValueId> loss,
      graph.AddNode("SoftmaxCrossEntropy", "loss", inputs,
                    {{"class_axis", axis}}, Phase::kLoss));
  if (options.label_smoothing == 0) return loss[0];
  return AddLabelSmoothing(graph, loss[0], inputs, axis,
                           options.label_smoothing);
}

absl::StatusOr<ValueId> LossOfPair(Graph& graph, ValueId prediction,
                                   ValueId target, const LossOptions& options) {
  switch (options.kind) {
    case LossKind::kL1:
      return AddL1Loss(graph, prediction, target);
    case LossKind::kHuber:
      return AddHuberLoss(graph, prediction, target, options.delta);
    case LossKind::kBce:
      return AddBceLoss(graph, prediction, target);
    default:
      LOADLINE_ASSIGN_OR_RETURN(
          const std::vector<ValueId> loss,
          graph.AddNode("MseLoss", "loss", {prediction, target}, {},
                        Phase::kLoss));
      return loss[0];
  }
}

// Adds the input `target` and the loss of it; appends the outputs.
absl::Status AddTargetLoss(Graph& graph, ValueId prediction,
                           const LossOptions& options,
                           std::vector<ValueId>* outputs) {
  const TensorType type = graph.value(prediction).type;
  LOADLINE_RETURN_IF_ERROR(CheckDTypes(type, options));
  if (graph.Find(kTarget).has_value()) {
    return absl::InvalidArgumentError(
        "the model already has a value named 'target', the name of the loss's "
        "own input; rename it in the model");
  }
  if (options.kind != LossKind::kCrossEntropy) {
    const ValueId target = graph.AddInput(kTarget, options.target);
    LOADLINE_ASSIGN_OR_RETURN(outputs->emplace_back(),
                              LossOfPair(graph, prediction, target, options));
    return absl::OkStatus();
  }
  LOADLINE_ASSIGN_OR_RETURN(const int64_t axis, FindClassAxis(type, options));
  const ValueId target = graph.AddInput(kTarget, options.target);
  LOADLINE_ASSIGN_OR_RETURN(
      outputs->emplace_back(),
      CrossEntropy(graph, prediction, target, axis, options));
  if (!options.count_correct) return absl::OkStatus();
  LOADLINE_ASSIGN_OR_RETURN(
      const std::vector<ValueId> correct,
      graph.AddNode("CountCorrect", "correct", {prediction, target},
                    {{"class_axis", axis}}, Phase::kLoss));
  outputs->push_back(correct[0]);
  return absl::OkStatus();
}

}  // namespace

absl::Status AddLoss(Graph& graph, const LossOptions& options) {
  LOADLINE_RETURN_IF_ERROR(CheckNumbers(options));
  LOADLINE_ASSIGN_OR_RETURN(const ValueId prediction,
                            FindPrediction(graph, options));
  std::vector<ValueId> outputs;
  if (options.kind == LossKind::kModel) {
    LOADLINE_ASSIGN_OR_RETURN(outputs.emplace_back(),
                              ModelLoss(graph, prediction));
  } else {
    LOADLINE_RETURN_IF_ERROR(
        AddTargetLoss(graph, prediction, options, &outputs));
  }
  if (options.keep_outputs) {
    outputs.insert(outputs.end(), graph.outputs.begin(), graph.outputs.end());
  }
  graph.outputs = std::move(outputs);
  return absl::OkStatus();
}

}  // namespace loadline::passes
