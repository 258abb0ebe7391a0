// Optimizer updates: each writes the new parameter and its state in place and
// runs exactly once per step. Tested in tests/models/infer_test.cc.
#include "models/ops/check_types.h"
#include "models/ops/families.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

// Parameter, gradient and state must have the same type.
absl::Status CheckAlike(InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireF32(inputs));
  for (size_t i = 1; i < inputs.size(); ++i) {
    LOADLINE_RETURN_IF_ERROR(
        RequireType(inputs, static_cast<int>(i), *inputs[0]));
  }
  return absl::OkStatus();
}

absl::Status CheckNotNegative(const Node& node, absl::string_view name) {
  const double value = node.attributes.Float(name, 0);
  if (value >= 0) return absl::OkStatus();
  return Refuse("attribute ", name, " is ", value, ", negative");
}

absl::StatusOr<OutputTypes> InferSgd(const Node& node, InputTypes inputs) {
  const bool has_buffer = inputs.size() > 2 && inputs[2] != nullptr;
  LOADLINE_RETURN_IF_ERROR(CheckAlike(inputs.subspan(0, has_buffer ? 3 : 2)));
  LOADLINE_RETURN_IF_ERROR(CheckNotNegative(node, "momentum"));
  LOADLINE_RETURN_IF_ERROR(CheckNotNegative(node, "weight_decay"));
  const double momentum = node.attributes.Float("momentum", 0);
  if (momentum > 0 && !has_buffer) {
    return Refuse("attribute momentum is ", momentum,
                  " but there is no momentum buffer");
  }
  if (node.attributes.Int("nesterov", 0) != 0 && momentum == 0) {
    return Refuse("attribute nesterov needs a momentum");
  }
  return OutputTypes(has_buffer ? 2 : 1, *inputs[0]);
}

absl::StatusOr<OutputTypes> InferAdamW(const Node& node, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(CheckAlike(inputs));
  for (absl::string_view name : {"beta1", "beta2"}) {
    const double beta = node.attributes.Float(name, 0);
    if (beta < 0 || beta >= 1) {
      return Refuse("attribute ", name, " is ", beta, ", not in 0 to below 1");
    }
  }
  LOADLINE_RETURN_IF_ERROR(CheckNotNegative(node, "epsilon"));
  LOADLINE_RETURN_IF_ERROR(CheckNotNegative(node, "weight_decay"));
  return OutputTypes(3, *inputs[0]);
}

}  // namespace

std::vector<Operator> OptimizerOperators() {
  Operator sgd;
  sgd.name = "Sgd";
  sgd.min_inputs = 2;
  sgd.max_inputs = 3;
  sgd.infer = InferSgd;
  sgd.cost = PerElement<6>;
  sgd.recompute = false;
  sgd.inplace = {{0, 0}, {2, 1}};
  sgd.attributes = {{"momentum", AttributeKind::kFloat},
                    {"weight_decay", AttributeKind::kFloat},
                    {"nesterov", AttributeKind::kInt}};
  Operator adamw;
  adamw.name = "AdamW";
  adamw.min_inputs = adamw.max_inputs = 4;
  adamw.infer = InferAdamW;
  adamw.cost = PerElement<16>;
  adamw.recompute = false;
  adamw.inplace = {{0, 0}, {2, 1}, {3, 2}};
  adamw.attributes = {{"beta1", AttributeKind::kFloat, true},
                      {"beta2", AttributeKind::kFloat, true},
                      {"epsilon", AttributeKind::kFloat, true},
                      {"weight_decay", AttributeKind::kFloat, true}};
  return {sgd, adamw};
}

}  // namespace loadline::models
