// Batch normalization in inference form (given statistics) and in training form
// (the batch's statistics), and the update of the running statistics. The
// training form's gradient reads x and two numbers per channel. Tested in
// tests/models/infer_test.cc and gradient_test.cc.
#include "models/ops/check_types.h"
#include "models/ops/families.h"
#include "models/ops/row_cuts.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

absl::Status CheckEpsilon(const Node& node) {
  const double epsilon = node.attributes.Float("epsilon", 0);
  if (epsilon >= 0) return absl::OkStatus();
  return Refuse("attribute epsilon is ", epsilon, ", negative");
}

// Requires channels at axis 1 of x, and one number per channel in the inputs
// from `first` on.
absl::Status CheckChannels(InputTypes inputs, int x, int first) {
  if (inputs[x]->rank() < 2) {
    return Refuse("x is ", inputs[x]->ToString(), ", without a channel axis");
  }
  for (size_t i = first; i < inputs.size(); ++i) {
    LOADLINE_RETURN_IF_ERROR(RequireDims(absl::StrCat("input ", i), *inputs[i],
                                         {inputs[x]->dims[1]}));
  }
  return absl::OkStatus();
}

TensorType Channels(const TensorType& x) {
  return TensorType{DType::kF32, {x.dims[1]}};
}

absl::StatusOr<OutputTypes> InferInference(const Node& node,
                                           InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireF32(inputs));
  LOADLINE_RETURN_IF_ERROR(CheckEpsilon(node));
  LOADLINE_RETURN_IF_ERROR(CheckChannels(inputs, 0, 1));
  return OutputTypes{*inputs[0]};
}

absl::StatusOr<OutputTypes> InferTraining(const Node& node, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireFloatData(inputs, 1));
  LOADLINE_RETURN_IF_ERROR(CheckEpsilon(node));
  LOADLINE_RETURN_IF_ERROR(CheckChannels(inputs, 0, 1));
  if (inputs[0]->elements() == 0) {
    return Refuse("the statistics of no elements, x is ",
                  inputs[0]->ToString());
  }
  const TensorType channels = Channels(*inputs[0]);
  return OutputTypes{*inputs[0], channels, channels};
}

absl::StatusOr<OutputTypes> InferGrad(const Node&, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireFloatData(inputs, 2));
  LOADLINE_RETURN_IF_ERROR(RequireType(inputs, 1, *inputs[0]));
  LOADLINE_RETURN_IF_ERROR(CheckChannels(inputs, 1, 2));
  const TensorType channels = Channels(*inputs[1]);
  return OutputTypes{*inputs[1], channels, channels};
}

absl::StatusOr<OutputTypes> InferRunningStats(const Node& node,
                                              InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireF32(inputs));
  LOADLINE_RETURN_IF_ERROR(CheckEpsilon(node));
  if (inputs[0]->rank() != 1) {
    return Refuse("input 0 is ", inputs[0]->ToString(), ", not a vector");
  }
  if (inputs.size() % 2 != 0) {
    return Refuse("a mean without its rstd in ", inputs.size(), " inputs");
  }
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) return Refuse("input ", i, " is missing");
    LOADLINE_RETURN_IF_ERROR(
        RequireType(inputs, static_cast<int>(i), *inputs[0]));
  }
  const double momentum = node.attributes.Float("momentum", 0);
  if (momentum < 0 || momentum > 1) {
    return Refuse("attribute momentum is ", momentum, ", not in 0 to 1");
  }
  const int64_t count = node.attributes.Int("count", 0);
  if (count < 2) {
    return Refuse("the unbiased variance of ", count,
                  " elements per channel (attribute count)");
  }
  return OutputTypes{*inputs[0], *inputs[0]};
}

absl::Status TrainingGradient(GradientContext& c) {
  if (c.output_gradient(1) != kNoValue || c.output_gradient(2) != kNoValue) {
    return absl::UnimplementedError(absl::StrCat(
        "no gradient through the statistics of \"", c.forward().name, "\""));
  }
  if (c.output_gradient(0) == kNoValue) return absl::OkStatus();
  LOADLINE_ASSIGN_OR_RETURN(
      std::vector<ValueId> gradients,
      c.EmitAll("BatchNormGrad", {c.output_gradient(0), c.input(0), c.input(1),
                                  c.output(1), c.output(2)}));
  for (int i : {0, 1, 2}) {
    if (c.wanted(i)) c.SetInputGradient(i, gradients[i]);
  }
  return absl::OkStatus();
}

// With given statistics y = (x - mean) rstd scale + bias is linear in x. Here
// `dx` = dy scale rstd and `centered` = x - mean, with channels along axis 1.
class InferenceGradientRule {
 public:
  explicit InferenceGradientRule(GradientContext& c)
      : c_(c), x_(c.type(c.input(0))), per_channel_(x_.dims.size() - 1, 1) {
    per_channel_[0] = x_.dims[1];
  }

  absl::Status Emit() {
    LOADLINE_RETURN_IF_ERROR(EmitScales());
    if (c_.wanted(0) || c_.wanted(3)) {
      LOADLINE_RETURN_IF_ERROR(EmitDx());
    }
    if (c_.wanted(2)) {
      LOADLINE_ASSIGN_OR_RETURN(ValueId dbias, Sum(c_.output_gradient(0)));
      c_.SetInputGradient(2, dbias);
    }
    if (c_.wanted(1) || c_.wanted(4)) {
      LOADLINE_RETURN_IF_ERROR(EmitDscaleAndDvar());
    }
    return absl::OkStatus();
  }

 private:
  // Reshapes a vector of channels so that it broadcasts against x.
  absl::StatusOr<ValueId> AlongChannels(ValueId vector) {
    return c_.Emit("Reshape", {vector}, {{"shape", per_channel_}});
  }

  // Sums over everything but the channels.
  absl::StatusOr<ValueId> Sum(ValueId full) {
    Ints axes = {0};
    for (int64_t i = 2; i < x_.rank(); ++i) axes.push_back(i);
    return c_.Emit("ReduceSum", {full}, {{"axes", axes}, {"keepdims", 0}});
  }

  absl::Status EmitScales() {
    const double epsilon = c_.forward().attributes.Float("epsilon", 0);
    LOADLINE_ASSIGN_OR_RETURN(ValueId eps,
                              c_.Scalar(static_cast<float>(epsilon)));
    LOADLINE_ASSIGN_OR_RETURN(ValueId sum, c_.Emit("Add", {c_.input(4), eps}));
    LOADLINE_ASSIGN_OR_RETURN(ValueId root, c_.Emit("Sqrt", {sum}));
    LOADLINE_ASSIGN_OR_RETURN(rstd_, c_.Emit("Reciprocal", {root}));
    LOADLINE_ASSIGN_OR_RETURN(slope_, c_.Emit("Mul", {rstd_, c_.input(1)}));
    return absl::OkStatus();
  }

  absl::Status EmitDx() {
    LOADLINE_ASSIGN_OR_RETURN(ValueId slope, AlongChannels(slope_));
    LOADLINE_ASSIGN_OR_RETURN(ValueId dx,
                              c_.Emit("Mul", {c_.output_gradient(0), slope}));
    if (c_.wanted(0)) c_.SetInputGradient(0, dx);
    if (c_.wanted(3)) {
      LOADLINE_ASSIGN_OR_RETURN(ValueId sum, Sum(dx));
      LOADLINE_ASSIGN_OR_RETURN(ValueId dmean, c_.Emit("Neg", {sum}));
      c_.SetInputGradient(3, dmean);
    }
    return absl::OkStatus();
  }

  // dscale = sum(dy centered) rstd; dvar = -0.5 dscale scale rstd^2.
  absl::Status EmitDscaleAndDvar() {
    LOADLINE_ASSIGN_OR_RETURN(ValueId mean, AlongChannels(c_.input(3)));
    LOADLINE_ASSIGN_OR_RETURN(ValueId centered,
                              c_.Emit("Sub", {c_.input(0), mean}));
    LOADLINE_ASSIGN_OR_RETURN(
        ValueId product, c_.Emit("Mul", {centered, c_.output_gradient(0)}));
    LOADLINE_ASSIGN_OR_RETURN(ValueId sum, Sum(product));
    LOADLINE_ASSIGN_OR_RETURN(ValueId dscale, c_.Emit("Mul", {sum, rstd_}));
    if (c_.wanted(1)) c_.SetInputGradient(1, dscale);
    if (c_.wanted(4)) {
      LOADLINE_ASSIGN_OR_RETURN(ValueId half, c_.Scalar(-0.5f));
      LOADLINE_ASSIGN_OR_RETURN(ValueId dvar, c_.Emit("Mul", {dscale, slope_}));
      LOADLINE_ASSIGN_OR_RETURN(dvar, c_.Emit("Mul", {dvar, rstd_}));
      LOADLINE_ASSIGN_OR_RETURN(dvar, c_.Emit("Mul", {dvar, half}));
      c_.SetInputGradient(4, dvar);
    }
    return absl::OkStatus();
  }

  GradientContext& c_;
  const TensorType x_;
  Ints per_channel_;  // [C, 1, ...]
  ValueId rstd_ = kNoValue;
  ValueId slope_ = kNoValue;  // rstd * scale
};

absl::Status InferenceGradient(GradientContext& c) {
  return InferenceGradientRule(c).Emit();
}

}  // namespace

std::vector<Operator> BatchNormOperators() {
  Operator inference;
  inference.name = "BatchNormalization";
  inference.min_inputs = inference.max_inputs = 5;
  inference.infer = InferInference;
  inference.gradient = InferenceGradient;
  inference.cost = PerElement<2>;
  inference.row_cuts = CutExamples<1>;
  inference.attributes = {{"epsilon", AttributeKind::kFloat, true}};

  Operator training;
  training.name = "BatchNormTraining";
  training.min_inputs = training.max_inputs = 3;
  training.infer = InferTraining;
  training.gradient = TrainingGradient;
  training.cost = PerElement<6>;
  training.attributes = {{"epsilon", AttributeKind::kFloat, true},
                         {"part_statistics", AttributeKind::kInt}};

  Operator grad;
  grad.name = "BatchNormGrad";
  grad.min_inputs = grad.max_inputs = 5;
  grad.infer = InferGrad;
  grad.cost = PerElement<10>;

  Operator running;
  running.name = "RunningStatsUpdate";
  running.min_inputs = 4;
  running.max_inputs = -1;
  running.infer = InferRunningStats;
  running.recompute = false;
  running.inplace = {{0, 0}, {1, 1}};
  running.attributes = {{"momentum", AttributeKind::kFloat, true},
                        {"epsilon", AttributeKind::kFloat, true},
                        {"count", AttributeKind::kInt, true}};
  return {inference, training, grad, running};
}

}  // namespace loadline::models
