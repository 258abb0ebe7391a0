// Rules for elementwise operators. Most have the same name and inputs in ONNX
// and in the Graph. Tested in tests/models/onnx_rules_test.cc.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/onnx/emitter.h"
#include "models/onnx/importer.h"
#include "models/onnx/model_file.h"
#include "models/onnx/node_attributes.h"
#include "models/ops/curves.h"
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
  if (importer.Type(node, 0).dtype == importer.Type(node, 1).dtype) {
    return Same(importer, node);
  }
  if (!importer.IsConstant(node, 1) || importer.Type(node, 1).elements() != 1) {
    Emitter e(importer, node);
    const ValueId base = e.Input(0);
    return e.Define(
        0, e.Emit("Pow", {base, e.Cast(e.Input(1), e.type(base).dtype)}));
  }
  LOADLINE_ASSIGN_OR_RETURN(double exponent, importer.ConstantReal(node, 1));
  LOADLINE_ASSIGN_OR_RETURN(ValueId base, importer.Use(node, 0));
  Tensor scalar = ScalarTensor(static_cast<float>(exponent));
  const ValueId power = importer.UseTensor(node.input(1), scalar);
  return importer.EmitOne(node, "Pow", {base, power});
}

// The rest with the sign of the dividend.
ValueId Rest(Emitter& e, ValueId a, ValueId b) {
  if (e.type(a).dtype == DType::kF32) return e.Emit("Fmod", {a, b});
  const ValueId whole = e.Emit("Mul", {e.Emit("Div", {a, b}), b});
  return e.Emit("Sub", {a, whole});
}

// The rest of a division. It has the sign of the divisor, as in Python, or that
// of the dividend with `fmod`.
absl::Status Mod(Importer& importer, const onnx::NodeProto& node) {
  const DType dtype = importer.Type(node, 0).dtype;
  Emitter e(importer, node);
  const ValueId a = e.Input(0), b = e.Input(1);
  const ValueId rest = Rest(e, a, b);
  if (IntAttribute(node, "fmod", 0) != 0) return e.Define(0, rest);
  const ValueId zero = e.Number(0, dtype);
  // The product of two numbers of different signs could overflow.
  const ValueId below = e.Emit("Less", {rest, zero});
  const ValueId divisor_below = e.Emit("Less", {b, zero});
  const ValueId either = e.Emit("Or", {below, divisor_below});
  const ValueId both = e.Emit("And", {below, divisor_below});
  const ValueId differ = e.Emit("And", {either, e.Emit("Not", {both})});
  const ValueId none = e.Emit("Equal", {rest, zero});
  const ValueId moves = e.Emit("And", {differ, e.Emit("Not", {none})});
  const ValueId moved = e.Emit("Add", {rest, b});
  return e.Define(0, e.Emit("Where", {moves, moved, rest}));
}

// Of integers as a difference; ONNX's other arithmetic has them already.
absl::Status AbsOrNeg(Importer& importer, const onnx::NodeProto& node) {
  const DType dtype = importer.Type(node, 0).dtype;
  if (dtype != DType::kI64 && dtype != DType::kI32) return Same(importer, node);
  Emitter e(importer, node);
  const ValueId x = e.Input(0);
  const ValueId negative = e.Emit("Sub", {e.Number(0, dtype), x});
  return e.Define(
      0, node.op_type() == "Neg" ? negative : e.Emit("Max", {x, negative}));
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

// The attributes of a curve have ONNX's names and defaults.
absl::Status Curve(Importer& importer, const onnx::NodeProto& node) {
  if (importer.Type(node, 0).dtype != DType::kF32) {
    importer.Unsupported(node, "on other types than f32");
    return absl::OkStatus();
  }
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, importer.Use(node, 0));
  Attributes attributes;
  for (const CurveAttribute& a : FindCurve(node.op_type())->attributes) {
    if (a.name.empty()) break;
    attributes.Set(a.name, FloatAttribute(node, a.name, a.fallback));
  }
  return importer.EmitOne(node, node.op_type(), {x}, std::move(attributes));
}

// a + b + c as two Adds.
absl::StatusOr<ValueId> SumOf(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(ValueId sum, importer.Use(node, 0));
  for (int i = 1; i < node.input_size(); ++i) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId next, importer.Use(node, i));
    LOADLINE_ASSIGN_OR_RETURN(sum,
                              importer.EmitValue(node, "Add", {sum, next}));
  }
  return sum;
}

absl::Status Sum(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(ValueId sum, SumOf(importer, node));
  importer.Define(node, 0, sum);
  return absl::OkStatus();
}

// More than two inputs pairwise.
absl::Status Extreme(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(ValueId best, importer.Use(node, 0));
  for (int i = 1; i < node.input_size(); ++i) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId next, importer.Use(node, i));
    LOADLINE_ASSIGN_OR_RETURN(
        best, importer.EmitValue(node, node.op_type(), {best, next}));
  }
  importer.Define(node, 0, best);
  return absl::OkStatus();
}

absl::Status Mean(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(ValueId sum, SumOf(importer, node));
  const ValueId factor = importer.UseTensor(
      "factor", ScalarTensor(1 / static_cast<float>(node.input_size())));
  return importer.EmitOne(node, "Mul", {sum, factor});
}

// Whether input i is a known number or absent; then sets `bound` to it.
absl::StatusOr<bool> KnownBound(const Importer& importer,
                                const onnx::NodeProto& node, int i,
                                double* bound) {
  if (!importer.Has(node, i)) return true;
  if (!importer.IsConstant(node, i)) return false;
  LOADLINE_ASSIGN_OR_RETURN(const double value, importer.ConstantReal(node, i));
  *bound = std::clamp(value, -kNoCurveBound, kNoCurveBound);
  return !std::isnan(value);
}

// Bounds that data decide, and integers, become Max and Min.
absl::Status ClipTo(Importer& importer, const onnx::NodeProto& node) {
  double low = -kNoCurveBound, high = kNoCurveBound;
  LOADLINE_ASSIGN_OR_RETURN(const bool low_known,
                            KnownBound(importer, node, 1, &low));
  LOADLINE_ASSIGN_OR_RETURN(const bool high_known,
                            KnownBound(importer, node, 2, &high));
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, importer.Use(node, 0));
  if (low_known && high_known && importer.Type(node, 0).dtype == DType::kF32) {
    return importer.EmitOne(node, "Clip", {x}, {{"min", low}, {"max", high}});
  }
  for (int i : {1, 2}) {
    if (!importer.Has(node, i)) continue;
    LOADLINE_ASSIGN_OR_RETURN(ValueId bound, importer.Use(node, i));
    LOADLINE_ASSIGN_OR_RETURN(
        x, importer.EmitValue(node, i == 1 ? "Max" : "Min", {x, bound}));
  }
  importer.Define(node, 0, x);
  return absl::OkStatus();
}

// x where it is above 0, else slope x. The slope's gradient reads x below 0
// only: the product of an infinite x with a gradient of 0 would be NaN.
absl::Status PRelu(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, importer.Use(node, 0));
  LOADLINE_ASSIGN_OR_RETURN(ValueId slope, importer.Use(node, 1));
  const ValueId zero = importer.UseTensor("zero", ScalarTensor(0));
  LOADLINE_ASSIGN_OR_RETURN(ValueId above,
                            importer.EmitValue(node, "Greater", {x, zero}));
  LOADLINE_ASSIGN_OR_RETURN(
      ValueId below, importer.EmitValue(node, "Where", {above, zero, x}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId scaled,
                            importer.EmitValue(node, "Mul", {slope, below}));
  return importer.EmitOne(node, "Where", {above, x, scaled});
}

// Only a NaN differs from itself.
absl::Status IsNaN(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, importer.Use(node, 0));
  LOADLINE_ASSIGN_OR_RETURN(ValueId same,
                            importer.EmitValue(node, "Equal", {x, x}));
  return importer.EmitOne(node, "Not", {same});
}

// An infinity of either sign, as the attributes say.
absl::Status IsInf(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, importer.Use(node, 0));
  const float infinity = std::numeric_limits<float>::infinity();
  const bool above = IntAttribute(node, "detect_positive", 1) != 0;
  const bool below = IntAttribute(node, "detect_negative", 1) != 0;
  ValueId found = kNoValue;
  for (const float end : {infinity, -infinity}) {
    if (!(end > 0 ? above : below)) continue;
    const ValueId bound = importer.UseTensor("infinity", ScalarTensor(end));
    LOADLINE_ASSIGN_OR_RETURN(ValueId here,
                              importer.EmitValue(node, "Equal", {x, bound}));
    if (found == kNoValue) {
      found = here;
      continue;
    }
    LOADLINE_ASSIGN_OR_RETURN(found,
                              importer.EmitValue(node, "Or", {found, here}));
  }
  if (found == kNoValue) {
    importer.Unsupported(node, "without a sign to detect");
    return absl::OkStatus();
  }
  importer.Define(node, 0, found);
  return absl::OkStatus();
}

// Either, and not both.
absl::Status Xor(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(ValueId a, importer.Use(node, 0));
  LOADLINE_ASSIGN_OR_RETURN(ValueId b, importer.Use(node, 1));
  LOADLINE_ASSIGN_OR_RETURN(ValueId either,
                            importer.EmitValue(node, "Or", {a, b}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId both,
                            importer.EmitValue(node, "And", {a, b}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId not_both,
                            importer.EmitValue(node, "Not", {both}));
  return importer.EmitOne(node, "And", {either, not_both});
}

absl::Status BitwiseNot(Importer& importer, const onnx::NodeProto& node) {
  Emitter e(importer, node);
  const ValueId ones = e.Number(-1, importer.Type(node, 0).dtype);
  return e.Define(0, e.Emit("BitwiseXor", {e.Input(0), ones}));
}

absl::Status Identity(Importer& importer, const onnx::NodeProto& node) {
  if (importer.IsDetached(node, 0) && !importer.IsConstant(node, 0) &&
      importer.Type(node, 0).dtype == DType::kF32) {
    LOADLINE_ASSIGN_OR_RETURN(const ValueId x, importer.Use(node, 0));
    return importer.EmitOne(
        node, "Reshape", {x},
        {{"shape", importer.Type(node, 0).dims}, {"detached", 1}});
  }
  importer.Alias(node, 0, 0);
  return absl::OkStatus();
}

}  // namespace

const std::map<std::string, Rule>& PointwiseRules() {
  static const auto* const kRules = [] {
    auto* rules = new std::map<std::string, Rule>{{"Pow", Pow},
                                                  {"Gelu", Gelu},
                                                  {"Mod", Mod},
                                                  {"Cast", Cast},
                                                  {"CastLike", CastLike},
                                                  {"Sum", Sum},
                                                  {"Max", Extreme},
                                                  {"Min", Extreme},
                                                  {"Identity", Identity},
                                                  {"IsNaN", IsNaN},
                                                  {"Mean", Mean},
                                                  {"PRelu", PRelu},
                                                  {"IsInf", IsInf},
                                                  {"Xor", Xor},
                                                  {"Abs", AbsOrNeg},
                                                  {"Neg", AbsOrNeg},
                                                  {"BitwiseNot", BitwiseNot}};
    ForEachCurve(Curves(), [rules](auto curve) {
      rules->emplace(curve.kFacts.name, Curve);
    });
    (*rules)["Clip"] = ClipTo;
    for (const char* op : {"Relu",        "Sigmoid",    "Tanh",
                           "Exp",         "Log",        "Sqrt",
                           "Erf",         "Reciprocal", "Not",
                           "Add",         "Sub",        "Mul",
                           "Div",         "Equal",      "Less",
                           "LessOrEqual", "Greater",    "GreaterOrEqual",
                           "And",         "Or",         "Where",
                           "BitwiseAnd",  "BitwiseOr",  "BitwiseXor"}) {
      rules->emplace(op, Same);
    }
    return rules;
  }();
  return *kRules;
}

}  // namespace loadline::models::onnx_internal
