// Max and average pooling. MaxPool's gradient reads the positions of the maxima
// (one i32 per output) and neither x nor y; AveragePool's reads only dy. Tested
// in tests/models/infer_test.cc and gradient_test.cc.
#include <limits>

#include "models/ops/check_types.h"
#include "models/ops/families.h"
#include "models/ops/row_cuts.h"
#include "models/ops/window.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

// Every window must contain an element that is not padding, or its maximum or
// mean would not exist. This holds if neither padding reaches a whole window
// and steps between taps cannot jump over the input.
absl::Status CheckNoEmptyWindow(const Window& window,
                                const std::vector<int64_t>& input) {
  for (size_t i = 0; i < input.size(); ++i) {
    const int64_t reach = (window.kernel[i] - 1) * window.dilations[i];
    const bool jumps =
        window.pads_begin[i] > 0 && window.dilations[i] > input[i];
    if (window.pads_begin[i] > reach || window.pads_end[i] > reach || jumps) {
      return Refuse("attribute pads leaves a window along spatial dimension ",
                    i, " with nothing but padding");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorType> PoolOutput(const Node& node, const TensorType& x) {
  if (x.rank() < 3) {
    return Refuse("x is ", x.ToString(), ", without spatial dimensions");
  }
  // ONNX's pools of volumes are imported as two of these.
  if (x.rank() > 4) {
    return Refuse("x is ", x.ToString(), ", of rank neither 3 nor 4");
  }
  LOADLINE_ASSIGN_OR_RETURN(Window window,
                            CheckedWindow(node, x.rank() - 2, {}));
  const std::vector<int64_t> input(x.dims.begin() + 2, x.dims.end());
  LOADLINE_RETURN_IF_ERROR(CheckNoEmptyWindow(window, input));
  LOADLINE_ASSIGN_OR_RETURN(
      std::vector<int64_t> spatial,
      WindowCounts(window, input, node.attributes.Int("ceil_mode", 0) != 0));
  std::vector<int64_t> dims = {x.dims[0], x.dims[1]};
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  return MakeTensorType(DType::kF32, std::move(dims));
}

absl::StatusOr<OutputTypes> InferMaxPool(const Node& node, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireF32(inputs));
  LOADLINE_ASSIGN_OR_RETURN(TensorType y, PoolOutput(node, *inputs[0]));
  int64_t plane = 1;
  for (size_t i = 2; i < inputs[0]->dims.size(); ++i) {
    plane *= inputs[0]->dims[i];
  }
  if (plane > std::numeric_limits<int32_t>::max()) {
    return Refuse("a plane of x has ", plane,
                  " elements, more than an i32 argmax can name");
  }
  TensorType argmax{DType::kI32, y.dims};
  return OutputTypes{std::move(y), std::move(argmax)};
}

absl::StatusOr<OutputTypes> InferMaxPoolGrad(const Node& node,
                                             InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireDType(inputs, 0, {DType::kF32}));
  LOADLINE_RETURN_IF_ERROR(
      RequireType(inputs, 1, TensorType{DType::kI32, inputs[0]->dims}));
  LOADLINE_ASSIGN_OR_RETURN(TensorType x, CheckedShape(node, DType::kF32));
  LOADLINE_ASSIGN_OR_RETURN(TensorType y, PoolOutput(node, x));
  LOADLINE_RETURN_IF_ERROR(RequireDims("dy", *inputs[0], y.dims));
  return OutputTypes{std::move(x)};
}

absl::Status MaxPoolGradient(GradientContext& c) {
  if (c.output_gradient(0) == kNoValue) return absl::OkStatus();
  // The gradient needs the window, so that a GPU finds an element's outputs
  // without atomic additions.
  Attributes attributes = c.forward().attributes;
  attributes.Set("shape", c.type(c.input(0)).dims);
  LOADLINE_ASSIGN_OR_RETURN(
      ValueId dx, c.Emit("MaxPoolGrad", {c.output_gradient(0), c.output(1)},
                         std::move(attributes)));
  c.SetInputGradient(0, dx);
  return absl::OkStatus();
}

absl::StatusOr<OutputTypes> InferAveragePool(const Node& node,
                                             InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireF32(inputs));
  return One(PoolOutput(node, *inputs[0]));
}

absl::StatusOr<OutputTypes> InferAveragePoolGrad(const Node& node,
                                                 InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireF32(inputs));
  LOADLINE_ASSIGN_OR_RETURN(TensorType x, CheckedShape(node, DType::kF32));
  LOADLINE_ASSIGN_OR_RETURN(TensorType y, PoolOutput(node, x));
  LOADLINE_RETURN_IF_ERROR(RequireDims("dy", *inputs[0], y.dims));
  return OutputTypes{std::move(x)};
}

absl::Status AveragePoolGradient(GradientContext& c) {
  Attributes attributes = c.forward().attributes;
  attributes.Set("shape", c.type(c.input(0)).dims);
  LOADLINE_ASSIGN_OR_RETURN(
      ValueId dx,
      c.Emit("AveragePoolGrad", {c.output_gradient(0)}, std::move(attributes)));
  c.SetInputGradient(0, dx);
  return absl::OkStatus();
}

// One comparison or addition per element of each of `pooled`'s windows.
OperatorCost WindowCost(const Node& node, const TensorType& pooled,
                        int64_t bytes) {
  OperatorCost cost;
  cost.flops = static_cast<double>(pooled.elements());
  for (int64_t k : node.attributes.IntList("kernel_shape")) {
    cost.flops *= static_cast<double>(k);
  }
  cost.bytes = bytes;
  return cost;
}

OperatorCost PoolCost(const Node& node, InputTypes inputs,
                      absl::Span<const TensorType> outputs) {
  return WindowCost(node, outputs[0], BytesReadAndWritten(inputs, outputs));
}

// One addition per element of dy.
OperatorCost MaxPoolGradCost(const Node&, InputTypes inputs,
                             absl::Span<const TensorType> outputs) {
  OperatorCost cost;
  cost.flops = static_cast<double>(inputs[0]->elements());
  cost.bytes = BytesReadAndWritten(inputs, outputs);
  return cost;
}

OperatorCost PoolGradCost(const Node& node, InputTypes inputs,
                          absl::Span<const TensorType> outputs) {
  return WindowCost(node, *inputs[0], BytesReadAndWritten(inputs, outputs));
}

}  // namespace

std::vector<Operator> PoolOperators() {
  Operator max;
  max.name = "MaxPool";
  max.infer = InferMaxPool;
  max.gradient = MaxPoolGradient;
  max.cost = PoolCost;
  max.row_cuts = CutExamples<1>;
  max.attributes = {{"kernel_shape", AttributeKind::kInts, true},
                    {"strides", AttributeKind::kInts},
                    {"pads", AttributeKind::kInts},
                    {"dilations", AttributeKind::kInts},
                    {"ceil_mode", AttributeKind::kInt}};
  Operator max_grad = max;
  max_grad.name = "MaxPoolGrad";
  max_grad.min_inputs = max_grad.max_inputs = 2;
  max_grad.infer = InferMaxPoolGrad;
  max_grad.gradient = nullptr;
  max_grad.cost = MaxPoolGradCost;
  max_grad.row_cuts = CutExamples<2>;
  max_grad.attributes.push_back({"shape", AttributeKind::kInts, true});

  Operator average = max;
  average.name = "AveragePool";
  average.infer = InferAveragePool;
  average.gradient = AveragePoolGradient;
  average.attributes.push_back({"count_include_pad", AttributeKind::kInt});
  Operator average_grad = average;
  average_grad.name = "AveragePoolGrad";
  average_grad.infer = InferAveragePoolGrad;
  average_grad.gradient = nullptr;
  average_grad.cost = PoolGradCost;
  average_grad.attributes.push_back({"shape", AttributeKind::kInts, true});
  return {max, max_grad, average, average_grad};
}

}  // namespace loadline::models
