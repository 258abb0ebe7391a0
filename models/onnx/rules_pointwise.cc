// Rules for elementwise operators. Most have the same name and inputs in ONNX
// and in the Graph. Tested in tests/models/onnx_rules_test.cc.
#include "absl/strings/str_cat.h"
#include "models/onnx/importer.h"
#include "models/onnx/model_file.h"
#include "models/onnx/node_attributes.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

absl::Status Same(Importer& importer, const onnx::NodeProto& node) {
  std::vector<ValueId> inputs;
  for (int i = 0; i < node.input_size(); ++i) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId id, importer.Use(node, i));
    inputs.push_back(id);
  }
  return importer.EmitOne(node, node.op_type(), std::move(inputs));
}

// In ONNX the exponent's type may differ from the base's.
absl::Status Pow(Importer& importer, const onnx::NodeProto& node) {
  if (!importer.IsConstant(node, 1) ||
      importer.Type(node, 0).dtype == importer.Type(node, 1).dtype ||
      importer.Type(node, 1).elements() != 1) {
    return Same(importer, node);
  }
  LOADLINE_ASSIGN_OR_RETURN(double exponent, importer.ConstantReal(node, 1));
  LOADLINE_ASSIGN_OR_RETURN(ValueId base, importer.Use(node, 0));
  Tensor scalar = ScalarTensor(static_cast<float>(exponent));
  const ValueId power = importer.UseTensor(node.input(1), scalar);
  return importer.EmitOne(node, "Pow", {base, power});
}

absl::Status Gelu(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, importer.Use(node, 0));
  return importer.EmitOne(
      node, "Gelu", {x},
      {{"approximate", StringAttribute(node, "approximate", "none")}});
}

absl::Status CastTo(Importer& importer, const onnx::NodeProto& node, DType to) {
  if (importer.Type(node, 0).dtype == to) {
    importer.Alias(node, 0, 0);
    return absl::OkStatus();
  }
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, importer.Use(node, 0));
  return importer.EmitOne(node, "Cast", {x},
                          {{"to", std::string(DTypeName(to))}});
}

absl::Status Cast(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(
      DType to, DTypeFromOnnx(static_cast<int32_t>(IntAttribute(node, "to", 0)),
                              "its result"));
  return CastTo(importer, node, to);
}

absl::Status CastLike(Importer& importer, const onnx::NodeProto& node) {
  return CastTo(importer, node, importer.Type(node, 1).dtype);
}

// a + b + c as two Adds.
absl::Status Sum(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(ValueId sum, importer.Use(node, 0));
  for (int i = 1; i < node.input_size(); ++i) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId next, importer.Use(node, i));
    LOADLINE_ASSIGN_OR_RETURN(sum,
                              importer.EmitValue(node, "Add", {sum, next}));
  }
  importer.Define(node, 0, sum);
  return absl::OkStatus();
}

// Max(a, b) is a where a > b, else b; more inputs pairwise.
absl::Status Extreme(Importer& importer, const onnx::NodeProto& node) {
  const char* const compare = node.op_type() == "Max" ? "Greater" : "Less";
  LOADLINE_ASSIGN_OR_RETURN(ValueId best, importer.Use(node, 0));
  for (int i = 1; i < node.input_size(); ++i) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId next, importer.Use(node, i));
    LOADLINE_ASSIGN_OR_RETURN(ValueId better,
                              importer.EmitValue(node, compare, {best, next}));
    LOADLINE_ASSIGN_OR_RETURN(
        best, importer.EmitValue(node, "Where", {better, best, next}));
  }
  importer.Define(node, 0, best);
  return absl::OkStatus();
}

// Only a NaN differs from itself.
absl::Status IsNaN(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, importer.Use(node, 0));
  LOADLINE_ASSIGN_OR_RETURN(ValueId same,
                            importer.EmitValue(node, "Equal", {x, x}));
  return importer.EmitOne(node, "Not", {same});
}

absl::Status Identity(Importer& importer, const onnx::NodeProto& node) {
  importer.Alias(node, 0, 0);
  return absl::OkStatus();
}

}  // namespace

const std::map<std::string, Rule>& PointwiseRules() {
  static const auto* const kRules = [] {
    auto* rules = new std::map<std::string, Rule>{
        {"Pow", Pow},           {"Gelu", Gelu},         {"Cast", Cast},
        {"CastLike", CastLike}, {"Sum", Sum},           {"Max", Extreme},
        {"Min", Extreme},       {"Identity", Identity}, {"IsNaN", IsNaN}};
    for (const char* op :
         {"Relu",  "Sigmoid", "Tanh",        "Exp",     "Log",
          "Sqrt",  "Neg",     "Abs",         "Erf",     "Reciprocal",
          "Not",   "Add",     "Sub",         "Mul",     "Div",
          "Equal", "Less",    "LessOrEqual", "Greater", "GreaterOrEqual",
          "And",   "Or",      "Where"}) {
      rules->emplace(op, Same);
    }
    return rules;
  }();
  return *kRules;
}

}  // namespace loadline::models::onnx_internal
