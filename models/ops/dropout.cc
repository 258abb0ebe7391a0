// Dropout, and random numbers of the same kind. Dropout's mask is a function of
// (seed, step, salt, element), so the gradient is the same operator with the
// same salt and nothing is saved. `offset` is added to the number of every
// element, so that a part of a tensor has the mask of that part. Tested in
// tests/models/infer_test.cc and gradient_test.cc.
#include "models/ops/check_types.h"
#include "models/ops/families.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

absl::Status CheckOffset(const Node& node) {
  const int64_t offset = node.attributes.Int("offset", 0);
  if (offset >= 0) return absl::OkStatus();
  return Refuse("attribute offset is ", offset, ", below 0");
}

absl::StatusOr<OutputTypes> InferDropout(const Node& node, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireFloat(inputs));
  const double ratio = node.attributes.Float("ratio", 0);
  if (ratio < 0 || ratio >= 1) {
    return Refuse("attribute ratio is ", ratio, ", not in 0 to below 1");
  }
  LOADLINE_RETURN_IF_ERROR(CheckOffset(node));
  return OutputTypes{*inputs[0]};
}

absl::Status DropoutGradient(GradientContext& c) {
  LOADLINE_ASSIGN_OR_RETURN(
      ValueId dx,
      c.Emit("Dropout", {c.output_gradient(0)}, c.forward().attributes));
  c.SetInputGradient(0, dx);
  return absl::OkStatus();
}

// Ten Philox rounds give four numbers: about 25 operations for each.
OperatorCost DropoutCost(const Node&, InputTypes inputs,
                         absl::Span<const TensorType> outputs) {
  OperatorCost cost;
  cost.flops = 25.0 * static_cast<double>(outputs[0].elements());
  cost.bytes = BytesReadAndWritten(inputs, outputs);
  return cost;
}

absl::StatusOr<OutputTypes> InferRandomUniform(const Node& node,
                                               InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireType(inputs, 0, TensorType{DType::kF32, {}}));
  LOADLINE_RETURN_IF_ERROR(CheckOffset(node));
  return One(CheckedShape(node, DType::kF32));
}

}  // namespace

std::vector<Operator> DropoutOperators() {
  Operator dropout;
  dropout.name = "Dropout";
  dropout.infer = InferDropout;
  dropout.gradient = DropoutGradient;
  dropout.cost = DropoutCost;
  dropout.inplace = {{0, 0}};
  dropout.attributes = {{"ratio", AttributeKind::kFloat, true},
                        {"salt", AttributeKind::kInt, true},
                        {"offset", AttributeKind::kInt}};
  Operator uniform;
  uniform.name = "RandomUniform";
  uniform.infer = InferRandomUniform;
  uniform.cost = DropoutCost;
  uniform.attributes = {{"shape", AttributeKind::kInts, true},
                        {"salt", AttributeKind::kInt, true},
                        {"offset", AttributeKind::kInt}};
  return {dropout, uniform};
}

}  // namespace loadline::models
