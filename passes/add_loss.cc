// The recipe names the loss, while shapes come from the model and the data
// file. All three can disagree, so most of this file is error messages. Tested
// in tests/passes/add_loss_test.cc.
#include "passes/add_loss.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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
        "): say which one the loss is taken of"));
  }
  return graph.outputs[0];
}

std::vector<int64_t> Without(std::vector<int64_t> dims, int64_t axis) {
  dims.erase(dims.begin() + axis);
  return dims;
}

std::string Shapes(const TensorType& prediction, const TensorType& target) {
  return absl::StrCat("prediction ", prediction.ToString(), ", target ",
                      target.ToString());
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
  if (options.kind == LossKind::kMse && options.target != prediction) {
    return absl::InvalidArgumentError(
        absl::StrCat("mse needs a target of the prediction's type: ",
                     Shapes(prediction, options.target)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LossKind> LossKindFromName(absl::string_view name) {
  if (name == "cross_entropy") return LossKind::kCrossEntropy;
  if (name == "mse") return LossKind::kMse;
  return absl::InvalidArgumentError(
      absl::StrCat("unknown loss '", name, "'; losses: cross_entropy, mse"));
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

absl::Status AddLoss(Graph& graph, const LossOptions& options) {
  LOADLINE_ASSIGN_OR_RETURN(const ValueId prediction,
                            FindPrediction(graph, options));
  const TensorType type = graph.value(prediction).type;
  LOADLINE_RETURN_IF_ERROR(CheckDTypes(type, options));
  if (graph.Find(kTarget).has_value()) {
    return absl::InvalidArgumentError(
        "the model already has a value named 'target', the name of the loss's "
        "own input; rename it in the model");
  }

  std::vector<ValueId> outputs;
  if (options.kind == LossKind::kCrossEntropy) {
    LOADLINE_ASSIGN_OR_RETURN(const int64_t axis, FindClassAxis(type, options));
    const ValueId target = graph.AddInput(kTarget, options.target);
    LOADLINE_ASSIGN_OR_RETURN(
        const std::vector<ValueId> loss,
        graph.AddNode("SoftmaxCrossEntropy", "loss", {prediction, target},
                      {{"class_axis", axis}}, Phase::kLoss));
    outputs.push_back(loss[0]);
    if (options.count_correct) {
      LOADLINE_ASSIGN_OR_RETURN(
          const std::vector<ValueId> correct,
          graph.AddNode("CountCorrect", "correct", {prediction, target},
                        {{"class_axis", axis}}, Phase::kLoss));
      outputs.push_back(correct[0]);
    }
  } else {
    const ValueId target = graph.AddInput(kTarget, options.target);
    LOADLINE_ASSIGN_OR_RETURN(
        const std::vector<ValueId> loss,
        graph.AddNode("MseLoss", "loss", {prediction, target}, {},
                      Phase::kLoss));
    outputs.push_back(loss[0]);
  }
  if (options.keep_outputs) {
    outputs.insert(outputs.end(), graph.outputs.begin(), graph.outputs.end());
  }
  graph.outputs = std::move(outputs);
  return absl::OkStatus();
}

}  // namespace loadline::passes
