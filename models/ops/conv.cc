// Convolution (NCHW, OIHW; one to three spatial dimensions, groups) and its two
// gradients. Tested in tests/models/infer_test.cc and gradient_test.cc.
#include "models/ops/check_types.h"
#include "models/ops/families.h"
#include "models/ops/row_cuts.h"
#include "models/ops/window.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

// Type of y, given the types of x and w.
absl::StatusOr<TensorType> ConvOutput(const Node& node, const TensorType& x,
                                      const TensorType& w) {
  if (x.rank() < 3 || x.rank() > 5) {
    return Refuse("x is ", x.ToString(), ", not of rank 3 to 5");
  }
  if (w.rank() != x.rank()) {
    return Refuse("w is ", w.ToString(), ", x is ", x.ToString(),
                  ": ranks differ");
  }
  const std::vector<int64_t> kernel(w.dims.begin() + 2, w.dims.end());
  LOADLINE_ASSIGN_OR_RETURN(Window window,
                            CheckedWindow(node, x.rank() - 2, kernel));
  if (window.kernel != kernel) {
    return Refuse("attribute kernel_shape is ", AttributeToText(window.kernel),
                  ", w is ", w.ToString());
  }
  const int64_t group = node.attributes.Int("group", 1);
  const int64_t channels = x.dims[1];
  if (group < 1 || channels % group != 0 || w.dims[0] % group != 0 ||
      w.dims[1] != channels / group) {
    return Refuse("x of ", x.ToString(), " and w of ", w.ToString(),
                  " do not fit ", group, " groups");
  }
  LOADLINE_ASSIGN_OR_RETURN(
      std::vector<int64_t> spatial,
      WindowCounts(window, {x.dims.begin() + 2, x.dims.end()}, false));
  std::vector<int64_t> dims = {x.dims[0], w.dims[0]};
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  return MakeTensorType(x.dtype, std::move(dims));
}

absl::StatusOr<OutputTypes> InferConv(const Node& node, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireFloat(inputs));
  LOADLINE_ASSIGN_OR_RETURN(TensorType y,
                            ConvOutput(node, *inputs[0], *inputs[1]));
  if (inputs.size() > 2 && inputs[2] != nullptr) {
    LOADLINE_RETURN_IF_ERROR(RequireDims("b", *inputs[2], {y.dims[1]}));
  }
  return OutputTypes{std::move(y)};
}

absl::StatusOr<OutputTypes> InferConvInputGrad(const Node& node,
                                               InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireFloat(inputs));
  LOADLINE_ASSIGN_OR_RETURN(TensorType x, CheckedShape(node, inputs[0]->dtype));
  LOADLINE_ASSIGN_OR_RETURN(TensorType y, ConvOutput(node, x, *inputs[1]));
  LOADLINE_RETURN_IF_ERROR(RequireDims("dy", *inputs[0], y.dims));
  return OutputTypes{std::move(x)};
}

absl::StatusOr<OutputTypes> InferConvWeightGrad(const Node& node,
                                                InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireFloat(inputs));
  LOADLINE_ASSIGN_OR_RETURN(TensorType w, CheckedShape(node, inputs[0]->dtype));
  LOADLINE_ASSIGN_OR_RETURN(TensorType y, ConvOutput(node, *inputs[1], w));
  LOADLINE_RETURN_IF_ERROR(RequireDims("dy", *inputs[0], y.dims));
  return OutputTypes{std::move(w)};
}

absl::StatusOr<ValueId> EmitWithShape(GradientContext& c, absl::string_view op,
                                      ValueId other, ValueId like) {
  Attributes attributes = c.forward().attributes;
  attributes.Set("shape", c.type(like).dims);
  return c.Emit(op, {c.output_gradient(0), other}, std::move(attributes));
}

// The gradient of ConvInputGrad is the convolution itself. As a forward
// operator ConvInputGrad is ONNX's ConvTranspose.
absl::Status ConvInputGradGradient(GradientContext& c) {
  const ValueId g = c.output_gradient(0);
  const ValueId dy = c.input(0);
  const ValueId w = c.input(1);
  Attributes attributes = c.forward().attributes;
  attributes.Erase("shape");
  if (c.wanted(0)) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId d, c.Emit("Conv", {g, w}, attributes));
    c.SetInputGradient(0, d);
  }
  if (c.wanted(1)) {
    attributes.Set("shape", c.type(w).dims);
    LOADLINE_ASSIGN_OR_RETURN(
        ValueId dw, c.Emit("ConvWeightGrad", {dy, g}, std::move(attributes)));
    c.SetInputGradient(1, dw);
  }
  return absl::OkStatus();
}

absl::Status ConvGradient(GradientContext& c) {
  const ValueId x = c.input(0);
  const ValueId w = c.input(1);
  if (c.wanted(0)) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId dx,
                              EmitWithShape(c, "ConvInputGrad", w, x));
    c.SetInputGradient(0, dx);
  }
  if (c.wanted(1)) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId dw,
                              EmitWithShape(c, "ConvWeightGrad", x, w));
    c.SetInputGradient(1, dw);
  }
  if (c.forward().inputs.size() > 2 && c.wanted(2)) {
    Ints axes = {0};
    for (int64_t i = 2; i < c.type(x).rank(); ++i) axes.push_back(i);
    LOADLINE_ASSIGN_OR_RETURN(ValueId db,
                              c.Emit("ReduceSum", {c.output_gradient(0)},
                                     {{"axes", axes}, {"keepdims", 0}}));
    c.SetInputGradient(2, db);
  }
  return absl::OkStatus();
}

// All three convolutions do the same number of multiply-adds: one per output of
// the forward convolution, per input channel of the group, per kernel position.
OperatorCost CostFromWeights(const TensorType& w, const TensorType& y,
                             int64_t bytes) {
  OperatorCost cost;
  cost.flops = 2.0 * static_cast<double>(y.elements());
  for (size_t i = 1; i < w.dims.size(); ++i) {
    cost.flops *= static_cast<double>(w.dims[i]);
  }
  cost.matmul_like = true;
  cost.bytes = bytes;
  return cost;
}

OperatorCost ConvCost(const Node&, InputTypes inputs,
                      absl::Span<const TensorType> outputs) {
  return CostFromWeights(*inputs[1], outputs[0],
                         BytesReadAndWritten(inputs, outputs));
}

OperatorCost ConvInputGradCost(const Node&, InputTypes inputs,
                               absl::Span<const TensorType> outputs) {
  return CostFromWeights(*inputs[1], *inputs[0],
                         BytesReadAndWritten(inputs, outputs));
}

OperatorCost ConvWeightGradCost(const Node&, InputTypes inputs,
                                absl::Span<const TensorType> outputs) {
  return CostFromWeights(outputs[0], *inputs[0],
                         BytesReadAndWritten(inputs, outputs));
}

}  // namespace

std::vector<Operator> ConvOperators() {
  Operator conv;
  conv.name = "Conv";
  conv.min_inputs = 2;
  conv.max_inputs = 3;
  conv.infer = InferConv;
  conv.gradient = ConvGradient;
  conv.cost = ConvCost;
  conv.row_cuts = CutExamples<1>;
  conv.attributes = {{"kernel_shape", AttributeKind::kInts},
                     {"strides", AttributeKind::kInts},
                     {"pads", AttributeKind::kInts},
                     {"dilations", AttributeKind::kInts},
                     {"group", AttributeKind::kInt}};
  Operator input_grad = conv;
  input_grad.name = "ConvInputGrad";
  input_grad.max_inputs = 2;
  input_grad.infer = InferConvInputGrad;
  input_grad.gradient = ConvInputGradGradient;
  input_grad.cost = ConvInputGradCost;
  input_grad.attributes.push_back({"shape", AttributeKind::kInts, true});
  Operator weight_grad = input_grad;
  weight_grad.name = "ConvWeightGrad";
  weight_grad.infer = InferConvWeightGrad;
  weight_grad.gradient = nullptr;
  weight_grad.cost = ConvWeightGradCost;
  weight_grad.row_cuts = CutWeightGrad;
  return {conv, input_grad, weight_grad};
}

}  // namespace loadline::models
