// The update of Adafactor. Its states are averages of squared gradients along
// the last axis and along the one before it, so their bytes are a fraction of
// the parameter's. Tested in tests/models/infer_test.cc.
#include "models/ops/adafactor.h"

#include <cstdint>
#include <vector>

#include "models/ops/check_types.h"
#include "models/ops/families.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

constexpr int kFactorInput = 4;

absl::Status CheckSettings(const Node& node) {
  for (const char* name :
       {"epsilon1", "epsilon2", "threshold", "weight_decay", "rate"}) {
    const double value = node.attributes.Float(name, 1);
    if (!(value >= 0)) {
      return Refuse("attribute ", name, " is ", value, ", negative");
    }
  }
  const double decay = node.attributes.Float("beta2_decay", 0);
  if (decay > 0) {
    return Refuse("attribute beta2_decay is ", decay, ", above 0");
  }
  return absl::OkStatus();
}

absl::StatusOr<OutputTypes> InferAdafactor(const Node& node,
                                           InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireF32(inputs));
  LOADLINE_RETURN_IF_ERROR(RequireType(inputs, 1, *inputs[0]));
  LOADLINE_RETURN_IF_ERROR(CheckSettings(node));
  const std::vector<TensorType> states = AdafactorStates(*inputs[0]);
  OutputTypes outputs = {*inputs[0]};
  for (size_t i = 0; i < states.size(); ++i) {
    if (inputs.size() <= 2 + i || inputs[2 + i] == nullptr) {
      return Refuse("input ", 2 + i, " is missing: a parameter of ",
                    inputs[0]->ToString(), " has ", states.size(), " states");
    }
    LOADLINE_RETURN_IF_ERROR(
        RequireType(inputs, static_cast<int>(2 + i), states[i]));
    outputs.push_back(states[i]);
  }
  if (states.size() == 1 && inputs.size() > 3 && inputs[3] != nullptr) {
    return Refuse("input 3: a parameter of ", inputs[0]->ToString(),
                  " has one state");
  }
  if (inputs.size() > kFactorInput && inputs[kFactorInput] != nullptr) {
    LOADLINE_RETURN_IF_ERROR(
        RequireType(inputs, kFactorInput, {DType::kF32, {}}));
  }
  return outputs;
}

// Reads the gradient four times: for rows, columns, the norm of the update, and
// the update.
OperatorCost AdafactorCost(const Node& node, InputTypes inputs,
                           absl::Span<const TensorType> outputs) {
  OperatorCost cost = PerElement<16>(node, inputs, outputs);
  cost.bytes += inputs[0]->bytes() + 3 * inputs[1]->bytes();
  return cost;
}

}  // namespace

std::vector<TensorType> AdafactorStates(const TensorType& parameter) {
  if (parameter.rank() < 2) return {parameter};
  TensorType row = parameter, column = parameter;
  row.dims[row.dims.size() - 1] = 1;
  column.dims[column.dims.size() - 2] = 1;
  return {row, column};
}

std::vector<Operator> AdafactorOperators() {
  Operator op;
  op.name = "Adafactor";
  op.min_inputs = 3;
  op.max_inputs = kFactorInput + 1;
  op.recompute = false;
  op.infer = InferAdafactor;
  op.cost = AdafactorCost;
  op.inplace = {{0, 0}, {2, 1}, {3, 2}};
  op.attributes = {{"beta2_decay", AttributeKind::kFloat, true},
                   {"epsilon1", AttributeKind::kFloat, true},
                   {"epsilon2", AttributeKind::kFloat, true},
                   {"threshold", AttributeKind::kFloat, true},
                   {"weight_decay", AttributeKind::kFloat, true},
                   {"rate", AttributeKind::kFloat}};
  return {op};
}

}  // namespace loadline::models
