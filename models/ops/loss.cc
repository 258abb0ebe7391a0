// Losses and CountCorrect. SoftmaxCrossEntropy's gradient reads the logits and
// one log-sum-exp per target. CrossEntropyRows and CrossEntropyMean are
// SoftmaxCrossEntropy in two: what is large, and the sum over all targets; so
// logits can be split by rows, and the loss keeps its bits. Tested in
// tests/models/infer_test.cc and gradient_test.cc.
#include "models/ops/check_types.h"
#include "models/ops/families.h"
#include "models/ops/row_cuts.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

const TensorType kF32Scalar{DType::kF32, {}};

// Checks logits (input `logits`) and target (the next input) against each
// other; returns the target's shape.
absl::StatusOr<std::vector<int64_t>> CheckClasses(const Node& node,
                                                  InputTypes inputs,
                                                  int logits) {
  LOADLINE_RETURN_IF_ERROR(
      RequireDType(inputs, logits, {DType::kF32, DType::kBF16}));
  LOADLINE_RETURN_IF_ERROR(
      RequireDType(inputs, logits + 1, {DType::kI64, DType::kI32}));
  std::vector<int64_t> dims = inputs[logits]->dims;
  LOADLINE_ASSIGN_OR_RETURN(
      int64_t axis,
      CheckedAxis(node, "class_axis", static_cast<int64_t>(dims.size())));
  if (inputs[logits]->elements() == 0) {
    return Refuse("logits are ", inputs[logits]->ToString(), ", without any");
  }
  dims.erase(dims.begin() + axis);
  LOADLINE_RETURN_IF_ERROR(RequireDims("target", *inputs[logits + 1], dims));
  return dims;
}

// The optional divisor: how many targets the mean is taken over.
absl::Status CheckCount(InputTypes inputs, size_t at) {
  if (inputs.size() <= at || inputs[at] == nullptr) return absl::OkStatus();
  return RequireType(inputs, static_cast<int>(at), kF32Scalar);
}

// The optional weight of each class.
absl::Status CheckWeights(const Node& node, InputTypes inputs, size_t logits,
                          size_t at) {
  if (inputs.size() <= at || inputs[at] == nullptr) return absl::OkStatus();
  const auto axis = static_cast<size_t>(node.attributes.Int("class_axis", 0));
  return RequireType(inputs, static_cast<int>(at),
                     {DType::kF32, {inputs[logits]->dims[axis]}});
}

absl::StatusOr<OutputTypes> InferCrossEntropy(const Node& node,
                                              InputTypes inputs) {
  LOADLINE_ASSIGN_OR_RETURN(std::vector<int64_t> dims,
                            CheckClasses(node, inputs, 0));
  LOADLINE_RETURN_IF_ERROR(CheckCount(inputs, 2));
  LOADLINE_RETURN_IF_ERROR(CheckWeights(node, inputs, 0, 3));
  return OutputTypes{kF32Scalar, TensorType{DType::kF32, std::move(dims)}};
}

absl::StatusOr<OutputTypes> InferCrossEntropyGrad(const Node& node,
                                                  InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireType(inputs, 0, kF32Scalar));
  LOADLINE_ASSIGN_OR_RETURN(std::vector<int64_t> dims,
                            CheckClasses(node, inputs, 1));
  LOADLINE_RETURN_IF_ERROR(
      RequireType(inputs, 3, TensorType{DType::kF32, std::move(dims)}));
  LOADLINE_RETURN_IF_ERROR(CheckCount(inputs, 4));
  LOADLINE_RETURN_IF_ERROR(CheckWeights(node, inputs, 1, 5));
  return OutputTypes{*inputs[1]};
}

absl::StatusOr<OutputTypes> InferCrossEntropyRows(const Node& node,
                                                  InputTypes inputs) {
  LOADLINE_ASSIGN_OR_RETURN(std::vector<int64_t> dims,
                            CheckClasses(node, inputs, 0));
  const TensorType row{DType::kF32, std::move(dims)};
  return OutputTypes{row, row};
}

absl::StatusOr<OutputTypes> InferCrossEntropyMean(const Node&,
                                                  InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireDType(inputs, 2, {DType::kI64, DType::kI32}));
  const TensorType row{DType::kF32, inputs[2]->dims};
  LOADLINE_RETURN_IF_ERROR(RequireType(inputs, 0, row));
  LOADLINE_RETURN_IF_ERROR(RequireType(inputs, 1, row));
  LOADLINE_RETURN_IF_ERROR(CheckCount(inputs, 3));
  return OutputTypes{kF32Scalar};
}

absl::Status CrossEntropyGradient(GradientContext& c) {
  if (c.output_gradient(1) != kNoValue) {
    return absl::UnimplementedError(absl::StrCat(
        "no gradient through the log-sum-exp of \"", c.forward().name, "\""));
  }
  if (c.output_gradient(0) == kNoValue) return absl::OkStatus();
  std::vector<ValueId> inputs = {c.output_gradient(0), c.input(0), c.input(1),
                                 c.output(1)};
  for (size_t i = 2; i < c.forward().inputs.size(); ++i) {
    inputs.push_back(c.input(static_cast<int>(i)));
  }
  LOADLINE_ASSIGN_OR_RETURN(ValueId dlogits,
                            c.Emit("SoftmaxCrossEntropyGrad", std::move(inputs),
                                   c.forward().attributes));
  c.SetInputGradient(0, dlogits);
  return absl::OkStatus();
}

absl::StatusOr<OutputTypes> InferCountTargets(const Node&, InputTypes inputs) {
  size_t targets = inputs.size();
  if (targets > 1 && inputs[targets - 1] != nullptr &&
      inputs[targets - 1]->dtype == DType::kF32) {
    if (inputs[--targets]->rank() != 1) {
      return Refuse("weights are ", inputs[targets]->ToString(),
                    ", not one for each class");
    }
  }
  for (size_t i = 0; i < targets; ++i) {
    LOADLINE_RETURN_IF_ERROR(
        RequireDType(inputs, static_cast<int>(i), {DType::kI64, DType::kI32}));
    LOADLINE_RETURN_IF_ERROR(
        RequireType(inputs, static_cast<int>(i), *inputs[0]));
  }
  return OutputTypes{kF32Scalar};
}

absl::Status CheckPair(InputTypes inputs, int prediction) {
  LOADLINE_RETURN_IF_ERROR(RequireF32(inputs));
  LOADLINE_RETURN_IF_ERROR(
      RequireType(inputs, prediction + 1, *inputs[prediction]));
  if (inputs[prediction]->elements() == 0) {
    return Refuse("the mean of no elements, prediction is ",
                  inputs[prediction]->ToString());
  }
  return absl::OkStatus();
}

absl::StatusOr<OutputTypes> InferMse(const Node&, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(CheckPair(inputs, 0));
  return OutputTypes{kF32Scalar};
}

absl::StatusOr<OutputTypes> InferMseGrad(const Node&, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireType(inputs, 0, kF32Scalar));
  LOADLINE_RETURN_IF_ERROR(CheckPair(inputs, 1));
  return OutputTypes{*inputs[1]};
}

absl::Status MseGradient(GradientContext& c) {
  const ValueId dloss = c.output_gradient(0);
  if (c.wanted(0)) {
    LOADLINE_ASSIGN_OR_RETURN(
        ValueId dprediction,
        c.Emit("MseLossGrad", {dloss, c.input(0), c.input(1)}));
    c.SetInputGradient(0, dprediction);
  }
  if (c.wanted(1)) {
    // The loss is symmetric.
    LOADLINE_ASSIGN_OR_RETURN(
        ValueId dtarget,
        c.Emit("MseLossGrad", {dloss, c.input(1), c.input(0)}));
    c.SetInputGradient(1, dtarget);
  }
  return absl::OkStatus();
}

absl::StatusOr<OutputTypes> InferCountCorrect(const Node& node,
                                              InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(CheckClasses(node, inputs, 0).status());
  return OutputTypes{TensorType{DType::kI64, {}}};
}

Operator LossEntry(absl::string_view name, int inputs,
                   decltype(Operator::infer) infer,
                   decltype(Operator::gradient) gradient) {
  Operator op;
  op.name = name;
  op.min_inputs = op.max_inputs = inputs;
  op.infer = infer;
  op.gradient = gradient;
  return op;
}

}  // namespace

std::vector<Operator> LossOperators() {
  Operator entropy = LossEntry("SoftmaxCrossEntropy", 2, InferCrossEntropy,
                               CrossEntropyGradient);
  entropy.max_inputs = 4;
  entropy.attributes = {{"class_axis", AttributeKind::kAxis, true}};
  Operator entropy_grad =
      LossEntry("SoftmaxCrossEntropyGrad", 4, InferCrossEntropyGrad, nullptr);
  // The axis refers to the logits, not to input 0, so it is never negative.
  entropy_grad.attributes = {{"class_axis", AttributeKind::kInt, true}};
  entropy_grad.inplace = {{1, 0}};
  entropy_grad.max_inputs = 6;
  entropy_grad.row_cuts = CutCrossEntropy;
  Operator entropy_rows =
      LossEntry("CrossEntropyRows", 2, InferCrossEntropyRows, nullptr);
  entropy_rows.attributes = entropy.attributes;
  entropy_rows.row_cuts = CutCrossEntropy;
  Operator count = LossEntry("CountCorrect", 2, InferCountCorrect, nullptr);
  count.attributes = entropy.attributes;
  Operator targets = LossEntry("CountTargets", 1, InferCountTargets, nullptr);
  targets.max_inputs = -1;
  Operator entropy_mean =
      LossEntry("CrossEntropyMean", 3, InferCrossEntropyMean, nullptr);
  entropy_mean.max_inputs = 4;
  return {entropy,
          entropy_grad,
          entropy_rows,
          entropy_mean,
          targets,
          count,
          LossEntry("MseLoss", 2, InferMse, MseGradient),
          LossEntry("MseLossGrad", 3, InferMseGrad, nullptr)};
}

}  // namespace loadline::models
