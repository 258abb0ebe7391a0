// Optimizer updates: each writes the new parameter and its state in place and
// runs exactly once per step. With the attribute `start`, the states are those
// of a part of the parameter: the elements from that number on, which alone are
// updated. States may be in 8 bits. Tested in tests/models/infer_test.cc.
#include "models/ops/check_types.h"
#include "models/ops/families.h"
#include "models/ops/state_blocks.h"
#include "planner/base/align.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

// Inputs first, first + 1, ... have the type of input `of`.
absl::Status RequireTypeOf(InputTypes inputs, size_t of, size_t first) {
  for (size_t i = first; i < inputs.size(); ++i) {
    LOADLINE_RETURN_IF_ERROR(
        RequireType(inputs, static_cast<int>(i), *inputs[of]));
  }
  return absl::OkStatus();
}

// States in 8 bits have a block for every 256 elements of the parameter; of a
// part, whole blocks from a multiple of 256 on.
absl::Status CheckStateBlocks(const Node& node, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireF32(inputs.first(2)));
  LOADLINE_RETURN_IF_ERROR(RequireTypeOf(inputs.first(2), 0, 1));
  LOADLINE_RETURN_IF_ERROR(RequireTypeOf(inputs, 2, 3));
  const int64_t elements = inputs[0]->elements();
  const int64_t start = node.attributes.Int("start", 0);
  if (start < 0 || start > elements || start % kStateBlockElements != 0) {
    return Refuse("attribute start is ", start,
                  "; with states in 8 bits it is ", "a multiple of ",
                  kStateBlockElements, " up to ", elements);
  }
  TensorType all = StateBlocksType(elements - start);
  if (node.attributes.Has("start") && inputs[2]->dims[0] < all.dims[0]) {
    all.dims[0] = inputs[2]->dims[0];
  }
  return RequireType(inputs, 2, all);
}

// Parameter, gradient and state must have the same type; states of a part are
// alike, and their elements are among the parameter's. Or states are in 8 bits.
absl::Status CheckAlike(const Node& node, InputTypes inputs) {
  if (inputs.size() > 2 && IsStateBlocks(*inputs[2])) {
    return CheckStateBlocks(node, inputs);
  }
  LOADLINE_RETURN_IF_ERROR(RequireF32(inputs));
  if (!node.attributes.Has("start")) return RequireTypeOf(inputs, 0, 1);
  if (inputs.size() < 3) {
    return Refuse("attribute start needs states, whose elements it counts");
  }
  LOADLINE_RETURN_IF_ERROR(RequireTypeOf(inputs.first(2), 0, 1));
  LOADLINE_RETURN_IF_ERROR(RequireTypeOf(inputs, 2, 3));
  LOADLINE_RETURN_IF_ERROR(CheckStretch(node, *inputs[2], *inputs[0]));
  const int64_t start_bytes =
      node.attributes.Int("start", 0) * DTypeBytes(inputs[0]->dtype);
  if (start_bytes % planner::kBufferAlignmentBytes == 0) {
    return absl::OkStatus();
  }
  return Refuse("attribute start is ", node.attributes.Int("start", 0),
                ", which is no multiple of ", planner::kBufferAlignmentBytes,
                " bytes");
}

// The parameter, then its states, which begin at input 2.
OutputTypes Updated(InputTypes inputs, size_t states) {
  OutputTypes outputs = {*inputs[0]};
  for (size_t i = 0; i < states; ++i) outputs.push_back(*inputs[2 + i]);
  return outputs;
}

// Flops by element that is updated. In place, nothing else is touched.
template <int kFlopsPerElement>
OperatorCost UpdateCost(const Node& node, InputTypes inputs,
                        absl::Span<const TensorType> outputs) {
  OperatorCost cost = PerElement<kFlopsPerElement>(node, inputs, outputs);
  if (!node.attributes.Has("start")) return cost;
  const int64_t elements = outputs[0].elements();
  const int64_t updated =
      StateElements(outputs[1], elements - node.attributes.Int("start", 0));
  cost.flops =
      static_cast<double>(kFlopsPerElement) * static_cast<double>(updated);
  const int64_t untouched = (elements - updated) * DTypeBytes(outputs[0].dtype);
  cost.bytes -= 3 * untouched;  // of the parameter, the gradient, the result
  return cost;
}

absl::Status CheckNotNegative(const Node& node, absl::string_view name) {
  const double value = node.attributes.Float(name, 0);
  if (value >= 0) return absl::OkStatus();
  return Refuse("attribute ", name, " is ", value, ", negative");
}

// The factor of the gradient, input i, is one number; `rate` is a factor of the
// learning rate.
absl::Status CheckFactors(const Node& node, InputTypes inputs, size_t i) {
  LOADLINE_RETURN_IF_ERROR(CheckNotNegative(node, "rate"));
  if (inputs.size() <= i || inputs[i] == nullptr) return absl::OkStatus();
  return RequireType(inputs, static_cast<int>(i), {DType::kF32, {}});
}

// Inputs i and i + 1, both or neither: the learning rate and the number of
// earlier updates.
absl::Status CheckProgress(InputTypes inputs, size_t i) {
  const auto has = [inputs](size_t at) {
    return inputs.size() > at && inputs[at] != nullptr;
  };
  if (has(i) != has(i + 1)) {
    return Refuse("a learning rate and a number of updates, or neither");
  }
  if (!has(i)) return absl::OkStatus();
  LOADLINE_RETURN_IF_ERROR(
      RequireType(inputs, static_cast<int>(i), {DType::kF32, {}}));
  return RequireType(inputs, static_cast<int>(i + 1), {DType::kF32, {}});
}

absl::StatusOr<OutputTypes> InferSgd(const Node& node, InputTypes inputs) {
  const bool has_buffer = inputs.size() > 2 && inputs[2] != nullptr;
  LOADLINE_RETURN_IF_ERROR(
      CheckAlike(node, inputs.subspan(0, has_buffer ? 3 : 2)));
  LOADLINE_RETURN_IF_ERROR(CheckFactors(node, inputs, 3));
  LOADLINE_RETURN_IF_ERROR(CheckProgress(inputs, 4));
  LOADLINE_RETURN_IF_ERROR(CheckNotNegative(node, "momentum"));
  LOADLINE_RETURN_IF_ERROR(CheckNotNegative(node, "weight_decay"));
  const double momentum = node.attributes.Float("momentum", 0);
  if (momentum > 0 && !has_buffer) {
    return Refuse("attribute momentum is ", momentum,
                  " but there is no momentum buffer");
  }
  if (node.attributes.Int("nesterov", 0) != 0 && !has_buffer) {
    return Refuse("attribute nesterov needs a momentum");
  }
  return Updated(inputs, has_buffer ? 1 : 0);
}

absl::Status CheckShare(const Node& node, absl::string_view name) {
  const double share = node.attributes.Float(name, 0);
  if (share >= 0 && share < 1) return absl::OkStatus();
  return Refuse("attribute ", name, " is ", share, ", not in 0 to below 1");
}

// Of an optimizer with `states` tensors of state.
absl::Status CheckMoments(const Node& node, InputTypes inputs, size_t states) {
  LOADLINE_RETURN_IF_ERROR(CheckAlike(node, inputs.subspan(0, 2 + states)));
  LOADLINE_RETURN_IF_ERROR(CheckFactors(node, inputs, 2 + states));
  LOADLINE_RETURN_IF_ERROR(CheckShare(node, "beta1"));
  LOADLINE_RETURN_IF_ERROR(CheckShare(node, "beta2"));
  return CheckNotNegative(node, "weight_decay");
}

absl::StatusOr<OutputTypes> InferAdam(const Node& node, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(CheckMoments(node, inputs, 2));
  LOADLINE_RETURN_IF_ERROR(CheckProgress(inputs, 5));
  LOADLINE_RETURN_IF_ERROR(CheckNotNegative(node, "epsilon"));
  return Updated(inputs, 2);
}

absl::StatusOr<OutputTypes> InferAdagrad(const Node& node, InputTypes inputs) {
  // A sum only grows: in 8 bits it would stop where a square is less than half
  // the distance of two codes.
  LOADLINE_RETURN_IF_ERROR(RequireF32(inputs.first(3)));
  LOADLINE_RETURN_IF_ERROR(CheckAlike(node, inputs.subspan(0, 3)));
  LOADLINE_RETURN_IF_ERROR(CheckFactors(node, inputs, 3));
  LOADLINE_RETURN_IF_ERROR(CheckProgress(inputs, 4));
  LOADLINE_RETURN_IF_ERROR(CheckNotNegative(node, "epsilon"));
  LOADLINE_RETURN_IF_ERROR(CheckNotNegative(node, "weight_decay"));
  LOADLINE_RETURN_IF_ERROR(CheckNotNegative(node, "rate_decay"));
  return Updated(inputs, 1);
}

absl::StatusOr<OutputTypes> InferLion(const Node& node, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(CheckMoments(node, inputs, 1));
  return Updated(inputs, 1);
}

absl::StatusOr<OutputTypes> InferAverage(const Node& node, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(CheckAlike(node, inputs));
  LOADLINE_RETURN_IF_ERROR(CheckShare(node, "decay"));
  return OutputTypes(1, *inputs[0]);
}

Operator Update(absl::string_view name, int min_inputs, int max_inputs) {
  Operator op;
  op.name = name;
  op.min_inputs = min_inputs;
  op.max_inputs = max_inputs;
  op.recompute = false;
  return op;
}

}  // namespace

std::vector<Operator> OptimizerOperators() {
  Operator sgd = Update("Sgd", 2, 6);
  sgd.infer = InferSgd;
  sgd.cost = UpdateCost<6>;
  sgd.inplace = {{0, 0}, {2, 1}};
  sgd.attributes = {{"momentum", AttributeKind::kFloat},
                    {"weight_decay", AttributeKind::kFloat},
                    {"nesterov", AttributeKind::kInt},
                    {"dampening", AttributeKind::kFloat},
                    {"start", AttributeKind::kInt},
                    {"rate", AttributeKind::kFloat}};
  Operator adamw = Update("AdamW", 4, 7);
  adamw.infer = InferAdam;
  adamw.cost = UpdateCost<16>;
  adamw.inplace = {{0, 0}, {2, 1}, {3, 2}};
  adamw.attributes = {{"beta1", AttributeKind::kFloat, true},
                      {"beta2", AttributeKind::kFloat, true},
                      {"epsilon", AttributeKind::kFloat, true},
                      {"weight_decay", AttributeKind::kFloat, true},
                      {"epsilon_hat", AttributeKind::kInt},
                      {"decay_after", AttributeKind::kFloat},
                      {"start", AttributeKind::kInt},
                      {"rate", AttributeKind::kFloat}};
  Operator adam = adamw;
  adam.name = "Adam";
  Operator adagrad = Update("Adagrad", 3, 6);
  adagrad.infer = InferAdagrad;
  adagrad.cost = UpdateCost<9>;
  adagrad.inplace = {{0, 0}, {2, 1}};
  adagrad.attributes = {{"epsilon", AttributeKind::kFloat, true},
                        {"weight_decay", AttributeKind::kFloat, true},
                        {"rate_decay", AttributeKind::kFloat},
                        {"start", AttributeKind::kInt},
                        {"rate", AttributeKind::kFloat}};
  Operator lion = Update("Lion", 3, 4);
  lion.infer = InferLion;
  lion.cost = UpdateCost<10>;
  lion.inplace = {{0, 0}, {2, 1}};
  lion.attributes = {{"beta1", AttributeKind::kFloat, true},
                     {"beta2", AttributeKind::kFloat, true},
                     {"weight_decay", AttributeKind::kFloat, true},
                     {"start", AttributeKind::kInt},
                     {"rate", AttributeKind::kFloat}};
  Operator average = Update("AverageUpdate", 2, 2);
  average.infer = InferAverage;
  average.cost = PerElement<3>;
  average.inplace = {{0, 0}};
  average.attributes = {{"decay", AttributeKind::kFloat, true}};
  return {sgd, adamw, adam, adagrad, lion, average};
}

}  // namespace loadline::models
