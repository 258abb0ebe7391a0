// Fake quantization: a tensor rounded to the grid of an integer type, in float,
// so that training sees what the integers will do. The range of a tensor, its
// average over the steps, and the grid that covers it are operators of their
// own. Formulas: models/ops/quantize.h. Tested in
// tests/models/infer_test.cc and gradient_test.cc.
#include "models/ops/check_types.h"
#include "models/ops/families.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

// Beyond 24 bits a float does not hold every integer.
constexpr int64_t kMostBits = 24;

absl::Status CheckGrid(const Node& node) {
  const int64_t bits = node.attributes.Int("bits", 0);
  const bool is_signed = node.attributes.Int("signed", 0) != 0;
  const int64_t fewest = is_signed ? 2 : 1;
  if (bits < fewest || bits > kMostBits) {
    return Refuse("attribute bits is ", bits, ", not in ", fewest, " to ",
                  kMostBits);
  }
  if (!is_signed && node.attributes.Int("symmetric", 0) != 0) {
    return Refuse("a symmetric grid is signed");
  }
  return absl::OkStatus();
}

// The shape of what each channel has one of: all of `x` without an axis.
absl::StatusOr<TensorType> Channels(const Node& node, const TensorType& x) {
  TensorType type{DType::kF32, {}};
  if (!node.attributes.Has("axis")) return type;
  LOADLINE_ASSIGN_OR_RETURN(const int64_t axis,
                            CheckedAxis(node, "axis", x.rank()));
  type.dims = {x.dims[static_cast<size_t>(axis)]};
  return type;
}

// x, scale and zero point from input `first` on. Returns the scale's type.
absl::StatusOr<TensorType> CheckQuantized(const Node& node, InputTypes inputs,
                                          size_t first) {
  LOADLINE_RETURN_IF_ERROR(RequireF32(inputs));
  LOADLINE_RETURN_IF_ERROR(CheckGrid(node));
  LOADLINE_ASSIGN_OR_RETURN(const TensorType channels,
                            Channels(node, *inputs[first]));
  for (size_t i : {first + 1, first + 2}) {
    LOADLINE_RETURN_IF_ERROR(
        RequireType(inputs, static_cast<int>(i), channels));
  }
  return channels;
}

absl::StatusOr<OutputTypes> InferFakeQuantize(const Node& node,
                                              InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(CheckQuantized(node, inputs, 0).status());
  return OutputTypes{*inputs[0]};
}

absl::StatusOr<OutputTypes> InferGrad(const Node& node, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(CheckQuantized(node, inputs, 1).status());
  LOADLINE_RETURN_IF_ERROR(RequireType(inputs, 1, *inputs[0]));
  return OutputTypes{*inputs[1]};
}

absl::StatusOr<OutputTypes> InferScaleGrad(const Node& node,
                                           InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireF32(inputs));
  LOADLINE_RETURN_IF_ERROR(RequireType(inputs, 1, *inputs[0]));
  return One(CheckQuantized(node, inputs, 1));
}

absl::StatusOr<OutputTypes> InferRange(const Node& node, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireF32(inputs));
  LOADLINE_ASSIGN_OR_RETURN(const TensorType channels,
                            Channels(node, *inputs[0]));
  return OutputTypes{channels, channels};
}

absl::StatusOr<OutputTypes> InferRangeUpdate(const Node& node,
                                             InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireF32(inputs));
  for (int i : {1, 2, 3}) {
    LOADLINE_RETURN_IF_ERROR(RequireType(inputs, i, *inputs[0]));
  }
  const double momentum = node.attributes.Float("momentum", 0);
  if (momentum < 0 || momentum > 1) {
    return Refuse("attribute momentum is ", momentum, ", not in 0 to 1");
  }
  return OutputTypes{*inputs[0], *inputs[0]};
}

absl::StatusOr<OutputTypes> InferGridOfRange(const Node& node,
                                             InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireF32(inputs));
  LOADLINE_RETURN_IF_ERROR(CheckGrid(node));
  LOADLINE_RETURN_IF_ERROR(RequireType(inputs, 1, *inputs[0]));
  return OutputTypes{*inputs[0], *inputs[0]};
}

// Straight through inside the clip range (Bengio et al. 2013), zero outside.
// The scale's is that of learned step size quantization (Esser et al. 2020).
absl::Status QuantizeGradient(GradientContext& c) {
  const ValueId dy = c.output_gradient(0);
  Attributes grid = c.forward().attributes;
  grid.Erase("scale_gradient");
  const std::vector<ValueId> inputs = {dy, c.input(0), c.input(1), c.input(2)};
  if (c.wanted(0)) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId dx,
                              c.Emit("FakeQuantizeGrad", inputs, grid));
    c.SetInputGradient(0, dx);
  }
  if (c.wanted(1)) {
    grid.Set("factor", c.forward().attributes.Float("scale_gradient", 1.0));
    LOADLINE_ASSIGN_OR_RETURN(ValueId dscale,
                              c.Emit("FakeQuantizeScaleGrad", inputs, grid));
    c.SetInputGradient(1, dscale);
  }
  if (c.wanted(2)) {
    return absl::UnimplementedError(absl::StrCat(
        "no gradient toward the zero point of \"", c.forward().name, "\""));
  }
  return absl::OkStatus();
}

OperatorCost RangeCost(const Node&, InputTypes inputs,
                       absl::Span<const TensorType> outputs) {
  OperatorCost cost;
  cost.flops = 2.0 * static_cast<double>(inputs[0]->elements());
  cost.bytes = BytesReadAndWritten(inputs, outputs);
  return cost;
}

}  // namespace

std::vector<Operator> QuantizeOperators() {
  const std::vector<AttributeSpec> grid = {
      {"bits", AttributeKind::kInt, true},
      {"signed", AttributeKind::kInt, true},
      {"symmetric", AttributeKind::kInt}};
  const AttributeSpec axis = {"axis", AttributeKind::kAxis};

  Operator quantize;
  quantize.name = "FakeQuantize";
  quantize.min_inputs = quantize.max_inputs = 3;
  quantize.infer = InferFakeQuantize;
  quantize.gradient = QuantizeGradient;
  quantize.cost = PerElement<6>;
  quantize.inplace = {{0, 0}};
  quantize.attributes = grid;
  quantize.attributes.push_back(axis);
  quantize.attributes.push_back({"scale_gradient", AttributeKind::kFloat});

  Operator grad = quantize;
  grad.name = "FakeQuantizeGrad";
  grad.min_inputs = grad.max_inputs = 4;
  grad.infer = InferGrad;
  grad.gradient = nullptr;
  grad.attributes.pop_back();

  Operator scale_grad = grad;
  scale_grad.name = "FakeQuantizeScaleGrad";
  scale_grad.infer = InferScaleGrad;
  scale_grad.cost = RangeCost;
  scale_grad.inplace = {};
  scale_grad.attributes.push_back({"factor", AttributeKind::kFloat});

  Operator range;
  range.name = "ValueRange";
  range.infer = InferRange;
  range.stops_gradient = true;
  range.cost = RangeCost;
  range.attributes = {axis};

  Operator update;
  update.name = "RangeUpdate";
  update.min_inputs = update.max_inputs = 4;
  update.infer = InferRangeUpdate;
  update.recompute = false;
  update.inplace = {{0, 0}, {1, 1}};
  update.attributes = {{"momentum", AttributeKind::kFloat},
                       {"average", AttributeKind::kInt, true}};

  Operator of_range;
  of_range.name = "QuantizationGrid";
  of_range.min_inputs = of_range.max_inputs = 2;
  of_range.infer = InferGridOfRange;
  of_range.stops_gradient = true;
  of_range.attributes = grid;
  return {quantize, grad, scale_grad, range, update, of_range};
}

}  // namespace loadline::models
