// The operator table: every family's entries, sorted by name, and the checks
// that hold for all of them. Tested in tests/models/infer_test.cc and
// tests/models/table_test.cc.
#include <algorithm>
#include <cmath>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "models/ops/check_types.h"
#include "models/ops/families.h"
#include "models/ops/operator.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

std::vector<Operator> CollectOperators() {
  std::vector<Operator> all;
  for (auto* family :
       {PointwiseOperators, CurveOperators,     BinaryOperators,
        ReduceOperators,    AlongAxisOperators, ShapeOperators,
        SliceOperators,     GatherOperators,    MatMulOperators,
        ConvOperators,      BatchNormOperators, LayerNormOperators,
        SoftmaxOperators,   AttentionOperators, PoolOperators,
        DropoutOperators,   LossOperators,      GradientNormOperators,
        OptimizerOperators, QuantizeOperators,  CodecOperators,
        RowOperators,       AdafactorOperators}) {
    for (Operator& op : family()) all.push_back(std::move(op));
  }
  std::sort(all.begin(), all.end(), [](const Operator& a, const Operator& b) {
    return a.name < b.name;
  });
  return all;
}

const std::vector<Operator>& Table() {
  static const std::vector<Operator>& table =
      *new std::vector<Operator>(CollectOperators());
  return table;
}

bool HasKind(const Attribute& value, AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kInt:
    case AttributeKind::kAxis:
      return std::holds_alternative<int64_t>(value);
    case AttributeKind::kFloat: {
      const double* f = std::get_if<double>(&value);
      return f != nullptr && std::isfinite(*f);
    }
    case AttributeKind::kString:
      return std::holds_alternative<std::string>(value);
    case AttributeKind::kInts:
    case AttributeKind::kAxes:
      return std::holds_alternative<Ints>(value);
  }
  return false;
}

absl::string_view KindName(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kInt:
    case AttributeKind::kAxis:
      return "an integer";
    case AttributeKind::kFloat:
      return "a finite float";
    case AttributeKind::kString:
      return "a string";
    case AttributeKind::kInts:
    case AttributeKind::kAxes:
      return "a list of integers";
  }
  return "";
}

absl::Status CheckAttributes(const Operator& op, const Attributes& attributes) {
  for (const auto& [name, value] : attributes.map()) {
    const auto spec = std::find_if(
        op.attributes.begin(), op.attributes.end(),
        [&name = name](const AttributeSpec& s) { return s.name == name; });
    if (spec == op.attributes.end()) {
      return Refuse("unknown attribute ", name);
    }
    if (!HasKind(value, spec->kind)) {
      return Refuse("attribute ", name, " is ", AttributeToText(value),
                    ", not ", KindName(spec->kind));
    }
  }
  for (const AttributeSpec& spec : op.attributes) {
    if (spec.required && !attributes.Has(spec.name)) {
      return Refuse("attribute ", spec.name, " is missing");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckInputCount(const Operator& op, InputTypes inputs) {
  const int count = static_cast<int>(inputs.size());
  if (count < op.min_inputs || (op.max_inputs >= 0 && count > op.max_inputs)) {
    return Refuse("has ", count, " inputs");
  }
  for (int i = 0; i < count; ++i) {
    const bool optional = op.max_inputs >= 0 && i >= op.min_inputs;
    if (inputs[i] == nullptr && !optional) {
      return Refuse("input ", i, " is missing");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<TensorType>> CheckAndInfer(const Operator& op,
                                                      const Node& node,
                                                      InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(CheckInputCount(op, inputs));
  LOADLINE_RETURN_IF_ERROR(CheckAttributes(op, node.attributes));
  return op.infer(node, inputs);
}

}  // namespace

const Operator* FindOperator(absl::string_view name) {
  const std::vector<Operator>& table = Table();
  const auto it = std::lower_bound(
      table.begin(), table.end(), name,
      [](const Operator& op, absl::string_view n) { return op.name < n; });
  return it != table.end() && it->name == name ? &*it : nullptr;
}

std::vector<const Operator*> AllOperators() {
  std::vector<const Operator*> all;
  for (const Operator& op : Table()) all.push_back(&op);
  return all;
}

absl::StatusOr<std::vector<TensorType>> InferTypes(const Node& node,
                                                   InputTypes inputs) {
  const Operator* op = FindOperator(node.op);
  if (op == nullptr) {
    return absl::UnimplementedError(absl::StrCat(
        "unknown operator ", node.op, " of node \"", node.name, "\""));
  }
  absl::StatusOr<std::vector<TensorType>> types =
      CheckAndInfer(*op, node, inputs);
  if (types.ok()) return types;
  absl::Status status(types.status().code(),
                      absl::StrCat(node.op, " \"", node.name,
                                   "\": ", types.status().message()));
  const auto dtype = types.status().GetPayload(kRefusedDType);
  if (dtype.has_value()) status.SetPayload(kRefusedDType, *dtype);
  return status;
}

std::string RefusedDType(const absl::Status& status) {
  return std::string(status.GetPayload(kRefusedDType).value_or(absl::Cord()));
}

void NormalizeAxes(Node* node, InputTypes inputs) {
  const Operator* op = FindOperator(node->op);
  if (op == nullptr || inputs.empty() || inputs[0] == nullptr) return;
  const int64_t rank = inputs[0]->rank();
  for (const AttributeSpec& spec : op->attributes) {
    const auto it = node->attributes.map().find(std::string(spec.name));
    if (it == node->attributes.map().end()) continue;
    Attribute value = it->second;
    if (spec.kind == AttributeKind::kAxis) {
      int64_t* axis = std::get_if<int64_t>(&value);
      if (axis != nullptr && *axis < 0 && *axis >= -rank) *axis += rank;
    } else if (spec.kind == AttributeKind::kAxes) {
      Ints* axes = std::get_if<Ints>(&value);
      if (axes == nullptr) continue;
      for (int64_t& axis : *axes) {
        if (axis < 0 && axis >= -rank) axis += rank;
      }
      std::sort(axes->begin(), axes->end());
    } else {
      continue;
    }
    node->attributes.Set(spec.name, std::move(value));
  }
}

}  // namespace loadline::models
