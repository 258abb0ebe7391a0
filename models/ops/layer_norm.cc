// Layer normalization over the axes from `axis` on. The gradient reads x and
// two numbers per normalized group. Tested in tests/models/infer_test.cc and
// gradient_test.cc.
#include "models/ops/check_types.h"
#include "models/ops/families.h"
#include "models/ops/row_cuts.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

// x's shape split at the axis: one statistic per group, one scale per member.
struct Cut {
  TensorType groups;
  TensorType members;
};

absl::StatusOr<Cut> CutAtAxis(const Node& node, const TensorType& x) {
  LOADLINE_ASSIGN_OR_RETURN(int64_t axis, CheckedAxis(node, "axis", x.rank()));
  Cut cut{{DType::kF32, {x.dims.begin(), x.dims.begin() + axis}},
          {DType::kF32, {x.dims.begin() + axis, x.dims.end()}}};
  if (cut.members.elements() == 0) {
    return Refuse("the statistics of no elements, x is ", x.ToString());
  }
  return cut;
}

absl::StatusOr<OutputTypes> InferLayerNorm(const Node& node,
                                           InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireFloatData(inputs, 1));
  const double epsilon = node.attributes.Float("epsilon", 0);
  if (epsilon < 0) {
    return Refuse("attribute epsilon is ", epsilon, ", negative");
  }
  LOADLINE_ASSIGN_OR_RETURN(Cut cut, CutAtAxis(node, *inputs[0]));
  LOADLINE_RETURN_IF_ERROR(RequireType(inputs, 1, cut.members));
  if (inputs.size() > 2 && inputs[2] != nullptr) {
    LOADLINE_RETURN_IF_ERROR(RequireType(inputs, 2, cut.members));
  }
  return OutputTypes{*inputs[0], cut.groups, cut.groups};
}

absl::StatusOr<OutputTypes> InferLayerNormGrad(const Node& node,
                                               InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireFloatData(inputs, 2));
  LOADLINE_RETURN_IF_ERROR(RequireType(inputs, 1, *inputs[0]));
  LOADLINE_ASSIGN_OR_RETURN(Cut cut, CutAtAxis(node, *inputs[1]));
  LOADLINE_RETURN_IF_ERROR(RequireType(inputs, 2, cut.members));
  LOADLINE_RETURN_IF_ERROR(RequireType(inputs, 3, cut.groups));
  LOADLINE_RETURN_IF_ERROR(RequireType(inputs, 4, cut.groups));
  return OutputTypes{*inputs[1], cut.members, cut.members};
}

absl::Status LayerNormGradient(GradientContext& c) {
  if (c.output_gradient(1) != kNoValue || c.output_gradient(2) != kNoValue) {
    return absl::UnimplementedError(absl::StrCat(
        "no gradient through the statistics of \"", c.forward().name, "\""));
  }
  if (c.output_gradient(0) == kNoValue) return absl::OkStatus();
  LOADLINE_ASSIGN_OR_RETURN(
      std::vector<ValueId> gradients,
      c.EmitAll("LayerNormGrad",
                {c.output_gradient(0), c.input(0), c.input(1), c.output(1),
                 c.output(2)},
                {{"axis", c.forward().attributes.Int("axis", 0)}}));
  for (size_t i = 0; i < c.forward().inputs.size(); ++i) {
    if (c.wanted(i)) c.SetInputGradient(i, gradients[i]);
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<Operator> LayerNormOperators() {
  Operator norm;
  norm.name = "LayerNormalization";
  norm.min_inputs = 2;
  norm.max_inputs = 3;
  norm.infer = InferLayerNorm;
  norm.gradient = LayerNormGradient;
  norm.cost = PerElement<6>;
  norm.row_cuts = CutLayerNorm;
  norm.attributes = {{"axis", AttributeKind::kAxis, true},
                     {"epsilon", AttributeKind::kFloat, true}};
  Operator grad;
  grad.name = "LayerNormGrad";
  grad.min_inputs = grad.max_inputs = 5;
  grad.infer = InferLayerNormGrad;
  grad.cost = PerElement<12>;
  grad.row_cuts = CutLayerNormGrad;
  grad.attributes = {{"axis", AttributeKind::kAxis, true}};
  return {norm, grad};
}

}  // namespace loadline::models
