// Softmax and LogSoftmax along one axis; their gradients read the output.
// Tested in tests/models/infer_test.cc and gradient_test.cc.
#include "models/ops/check_types.h"
#include "models/ops/families.h"
#include "models/ops/row_cuts.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

absl::StatusOr<OutputTypes> InferSoftmax(const Node& node, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireF32(inputs));
  LOADLINE_RETURN_IF_ERROR(
      CheckedAxis(node, "axis", inputs[0]->rank()).status());
  return OutputTypes{*inputs[0]};
}

absl::StatusOr<OutputTypes> InferSoftmaxGrad(const Node& node,
                                             InputTypes inputs) {
  LOADLINE_ASSIGN_OR_RETURN(OutputTypes types, InferSoftmax(node, inputs));
  LOADLINE_RETURN_IF_ERROR(RequireType(inputs, 1, *inputs[0]));
  return types;
}

absl::Status FromOutput(GradientContext& c, absl::string_view op) {
  LOADLINE_ASSIGN_OR_RETURN(
      ValueId dx,
      c.Emit(op, {c.output_gradient(0), c.output(0)}, c.forward().attributes));
  c.SetInputGradient(0, dx);
  return absl::OkStatus();
}

absl::Status SoftmaxGradient(GradientContext& c) {
  return FromOutput(c, "SoftmaxGrad");
}
absl::Status LogSoftmaxGradient(GradientContext& c) {
  return FromOutput(c, "LogSoftmaxGrad");
}

// A maximum, an exponential, a sum and a division per element.
OperatorCost SoftmaxCost(const Node&, InputTypes inputs,
                         absl::Span<const TensorType> outputs) {
  OperatorCost cost;
  cost.flops = 14.0 * static_cast<double>(outputs[0].elements());
  cost.bytes = BytesReadAndWritten(inputs, outputs);
  return cost;
}

Operator SoftmaxEntry(absl::string_view name, int inputs,
                      decltype(Operator::infer) infer,
                      decltype(Operator::gradient) gradient) {
  Operator op;
  op.name = name;
  op.min_inputs = op.max_inputs = inputs;
  op.infer = infer;
  op.gradient = gradient;
  op.cost = SoftmaxCost;
  op.inplace = {{0, 0}};
  op.row_cuts = CutAlongAxis;
  op.attributes = {{"axis", AttributeKind::kAxis, true}};
  return op;
}

}  // namespace

std::vector<Operator> SoftmaxOperators() {
  return {SoftmaxEntry("Softmax", 1, InferSoftmax, SoftmaxGradient),
          SoftmaxEntry("LogSoftmax", 1, InferSoftmax, LogSoftmaxGradient),
          SoftmaxEntry("SoftmaxGrad", 2, InferSoftmaxGrad, nullptr),
          SoftmaxEntry("LogSoftmaxGrad", 2, InferSoftmaxGrad, nullptr)};
}

}  // namespace loadline::models
