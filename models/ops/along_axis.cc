// Operators along one axis: the largest and the smallest element, cumulative
// sums, and the positions of the largest elements. Tested in
// tests/models/infer_test.cc and gradient_test.cc.
#include "models/ops/check_types.h"
#include "models/ops/families.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

absl::Status RequireNumbers(InputTypes inputs) {
  return RequireDType(inputs, 0, {DType::kF32, DType::kI64, DType::kI32});
}

// x with `size` elements along the axis.
absl::StatusOr<TensorType> WithAxis(const Node& node, InputTypes inputs,
                                    int64_t size) {
  LOADLINE_RETURN_IF_ERROR(RequireNumbers(inputs));
  LOADLINE_ASSIGN_OR_RETURN(const int64_t axis,
                            CheckedAxis(node, "axis", inputs[0]->rank()));
  TensorType type = *inputs[0];
  int64_t& dim = type.dims[static_cast<size_t>(axis)];
  if (dim < size) {
    return Refuse("axis ", axis, " has ", dim, " elements, not ", size);
  }
  dim = size;
  return type;
}

absl::StatusOr<OutputTypes> InferExtreme(const Node& node, InputTypes inputs) {
  return One(WithAxis(node, inputs, 1));
}

absl::StatusOr<OutputTypes> InferCumSum(const Node& node, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireNumbers(inputs));
  LOADLINE_RETURN_IF_ERROR(
      CheckedAxis(node, "axis", inputs[0]->rank()).status());
  return OutputTypes{*inputs[0]};
}

absl::StatusOr<OutputTypes> InferTopK(const Node& node, InputTypes inputs) {
  const int64_t k = node.attributes.Int("k", 0);
  if (k < 0) return Refuse("attribute k is ", k);
  LOADLINE_ASSIGN_OR_RETURN(TensorType type, WithAxis(node, inputs, k));
  type.dtype = DType::kI64;
  return OutputTypes{std::move(type)};
}

// Of the elements at which `hit` holds, f32 `ones` and zeros, the first.
absl::StatusOr<ValueId> FirstHit(GradientContext& c, ValueId hit, ValueId ones,
                                 ValueId zero) {
  const int64_t axis = c.forward().attributes.Int("axis", 0);
  LOADLINE_ASSIGN_OR_RETURN(
      ValueId before,
      c.Emit("CumSum", {ones}, {{"axis", axis}, {"exclusive", int64_t{1}}}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId first, c.Emit("Equal", {before, zero}));
  return c.Emit("And", {hit, first});
}

// Shared evenly by the elements that equal the result, as in PyTorch's amax; or
// the first one's, as in its max over one dimension.
absl::Status ExtremeGradient(GradientContext& c) {
  const Ints axis = {c.forward().attributes.Int("axis", 0)};
  LOADLINE_ASSIGN_OR_RETURN(ValueId zero, c.Scalar(0.0f));
  LOADLINE_ASSIGN_OR_RETURN(ValueId hit,
                            c.Emit("Equal", {c.input(0), c.output(0)}));
  LOADLINE_ASSIGN_OR_RETURN(
      ValueId ones, c.Emit("Cast", {hit}, {{"to", std::string("f32")}}));
  if (c.forward().attributes.Int("first", 0) != 0) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId first, FirstHit(c, hit, ones, zero));
    LOADLINE_ASSIGN_OR_RETURN(
        ValueId dx, c.Emit("Where", {first, c.output_gradient(0), zero}));
    c.SetInputGradient(0, dx);
    return absl::OkStatus();
  }
  LOADLINE_ASSIGN_OR_RETURN(
      ValueId count,
      c.Emit("ReduceSum", {ones}, {{"axes", axis}, {"keepdims", int64_t{1}}}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId share,
                            c.Emit("Div", {c.output_gradient(0), count}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId dx, c.Emit("Where", {hit, share, zero}));
  c.SetInputGradient(0, dx);
  return absl::OkStatus();
}

// The sums in the other direction.
absl::Status CumSumGradient(GradientContext& c) {
  Attributes attributes = c.forward().attributes;
  attributes.Set("reverse", int64_t{attributes.Int("reverse", 0) == 0});
  LOADLINE_ASSIGN_OR_RETURN(ValueId dx, c.Emit("CumSum", {c.output_gradient(0)},
                                               std::move(attributes)));
  c.SetInputGradient(0, dx);
  return absl::OkStatus();
}

// Passes over the input, one for each of the k elements.
OperatorCost LineCost(const Node& node, InputTypes inputs,
                      absl::Span<const TensorType> outputs) {
  OperatorCost cost;
  cost.flops = static_cast<double>(node.attributes.Int("k", 1)) *
               static_cast<double>(inputs[0]->elements());
  cost.bytes = BytesReadAndWritten(inputs, outputs);
  return cost;
}

}  // namespace

std::vector<Operator> AlongAxisOperators() {
  Operator max;
  max.name = "ReduceMax";
  max.infer = InferExtreme;
  max.gradient = ExtremeGradient;
  max.cost = LineCost;
  max.attributes = {{"axis", AttributeKind::kAxis, true}};
  const Operator along = max;
  max.attributes.push_back({"first", AttributeKind::kInt});
  Operator min = max;
  min.name = "ReduceMin";
  Operator sum = along;
  sum.name = "CumSum";
  sum.infer = InferCumSum;
  sum.gradient = CumSumGradient;
  sum.inplace = {{0, 0}};
  sum.attributes.push_back({"exclusive", AttributeKind::kInt});
  sum.attributes.push_back({"reverse", AttributeKind::kInt});
  Operator top = along;
  top.name = "TopK";
  top.infer = InferTopK;
  top.gradient = nullptr;
  top.attributes.push_back({"k", AttributeKind::kInt, true});
  top.attributes.push_back({"largest", AttributeKind::kInt});
  top.attributes.push_back({"last", AttributeKind::kInt});
  return {max, min, sum, top};
}

}  // namespace loadline::models
