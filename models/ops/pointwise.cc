// Elementwise operators of one input, and their gradients. A gradient reads the
// output if that is sufficient (Relu, Sigmoid, Tanh, Exp, Sqrt, Reciprocal), so
// that the input need not be saved. Tested in tests/models/infer_test.cc and
// gradient_test.cc.
#include "models/ops/check_types.h"
#include "models/ops/families.h"
#include "models/ops/row_cuts.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

absl::StatusOr<OutputTypes> InferSame(const Node&, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireFloat(inputs));
  return OutputTypes{*inputs[0]};
}

// Gradient operators: dy and the saved value have the same type.
absl::StatusOr<OutputTypes> InferSamePair(const Node&, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireFloat(inputs));
  LOADLINE_RETURN_IF_ERROR(RequireType(inputs, 1, *inputs[0]));
  return OutputTypes{*inputs[0]};
}

absl::StatusOr<OutputTypes> InferGelu(const Node& node, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(CheckApproximate(node));
  return InferSame(node, inputs);
}

absl::StatusOr<OutputTypes> InferGeluGrad(const Node& node, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(CheckApproximate(node));
  return InferSamePair(node, inputs);
}

absl::StatusOr<OutputTypes> InferNot(const Node&, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireDType(inputs, 0, {DType::kBool}));
  return OutputTypes{*inputs[0]};
}

absl::StatusOr<OutputTypes> InferCast(const Node& node, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(
      RequireDType(inputs, 0,
                   {DType::kF32, DType::kBF16, DType::kI64, DType::kI32,
                    DType::kU8, DType::kBool}));
  const std::string name = node.attributes.String("to", "");
  const absl::StatusOr<DType> to = DTypeFromName(name);
  if (!to.ok() ||
      (*to != DType::kF32 && *to != DType::kBF16 && *to != DType::kI64 &&
       *to != DType::kI32 && *to != DType::kBool)) {
    return Refuse("attribute to is \"", name,
                  "\", not \"f32\", \"bf16\", \"i64\", \"i32\" or \"bool\"");
  }
  return One(MakeTensorType(*to, inputs[0]->dims));
}

// dx = op(dy, y): the operator named by `op` reads the output.
absl::Status FromOutput(GradientContext& c, absl::string_view op) {
  LOADLINE_ASSIGN_OR_RETURN(ValueId dx,
                            c.Emit(op, {c.output_gradient(0), c.output(0)}));
  c.SetInputGradient(0, dx);
  return absl::OkStatus();
}

absl::Status ReluGradient(GradientContext& c) {
  return FromOutput(c, "ReluGrad");
}
absl::Status SigmoidGradient(GradientContext& c) {
  return FromOutput(c, "SigmoidGrad");
}
absl::Status TanhGradient(GradientContext& c) {
  return FromOutput(c, "TanhGrad");
}
// (e^x)' = e^x
absl::Status ExpGradient(GradientContext& c) { return FromOutput(c, "Mul"); }

absl::Status LogGradient(GradientContext& c) {
  LOADLINE_ASSIGN_OR_RETURN(ValueId dx,
                            c.Emit("Div", {c.output_gradient(0), c.input(0)}));
  c.SetInputGradient(0, dx);
  return absl::OkStatus();
}

// dx = dy * 0.5 / y
absl::Status SqrtGradient(GradientContext& c) {
  LOADLINE_ASSIGN_OR_RETURN(ValueId half, c.Scalar(0.5f));
  LOADLINE_ASSIGN_OR_RETURN(ValueId scaled,
                            c.Emit("Mul", {c.output_gradient(0), half}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId dx, c.Emit("Div", {scaled, c.output(0)}));
  c.SetInputGradient(0, dx);
  return absl::OkStatus();
}

absl::Status NegGradient(GradientContext& c) {
  LOADLINE_ASSIGN_OR_RETURN(ValueId dx, c.Emit("Neg", {c.output_gradient(0)}));
  c.SetInputGradient(0, dx);
  return absl::OkStatus();
}

// dx = sign(x) dy, 0 at 0.
absl::Status AbsGradient(GradientContext& c) {
  const ValueId dy = c.output_gradient(0);
  LOADLINE_ASSIGN_OR_RETURN(ValueId zero, c.Scalar(0.0f));
  LOADLINE_ASSIGN_OR_RETURN(ValueId below, c.Emit("Less", {c.input(0), zero}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId above,
                            c.Emit("Greater", {c.input(0), zero}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId negated, c.Emit("Neg", {dy}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId rest,
                            c.Emit("Where", {below, negated, zero}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId dx, c.Emit("Where", {above, dy, rest}));
  c.SetInputGradient(0, dx);
  return absl::OkStatus();
}

absl::Status ErfGradient(GradientContext& c) {
  LOADLINE_ASSIGN_OR_RETURN(
      ValueId dx, c.Emit("ErfGrad", {c.output_gradient(0), c.input(0)}));
  c.SetInputGradient(0, dx);
  return absl::OkStatus();
}

// dx = -dy y y
absl::Status ReciprocalGradient(GradientContext& c) {
  LOADLINE_ASSIGN_OR_RETURN(ValueId dx,
                            c.Emit("Mul", {c.output_gradient(0), c.output(0)}));
  LOADLINE_ASSIGN_OR_RETURN(dx, c.Emit("Mul", {dx, c.output(0)}));
  LOADLINE_ASSIGN_OR_RETURN(dx, c.Emit("Neg", {dx}));
  c.SetInputGradient(0, dx);
  return absl::OkStatus();
}

absl::Status GeluGradient(GradientContext& c) {
  LOADLINE_ASSIGN_OR_RETURN(
      ValueId dx, c.Emit("GeluGrad", {c.output_gradient(0), c.input(0)},
                         c.forward().attributes));
  c.SetInputGradient(0, dx);
  return absl::OkStatus();
}

bool HasGradient(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16;
}

// A gradient passes only through casts from float to float.
absl::Status CastGradient(GradientContext& c) {
  const DType from = c.type(c.input(0)).dtype;
  const DType to = c.type(c.output(0)).dtype;
  ValueId dx = c.output_gradient(0);
  if (!HasGradient(from) || !HasGradient(to)) return absl::OkStatus();
  if (from != to) {
    LOADLINE_ASSIGN_OR_RETURN(
        dx, c.Emit("Cast", {dx}, {{"to", std::string(DTypeName(from))}}));
  }
  c.SetInputGradient(0, dx);
  return absl::OkStatus();
}

using Gradient = absl::Status (*)(GradientContext&);
using Cost = OperatorCost (*)(const Node&, InputTypes,
                              absl::Span<const TensorType>);

Operator Unary(absl::string_view name, Gradient gradient, Cost cost) {
  Operator op;
  op.name = name;
  op.infer = InferSame;
  op.gradient = gradient;
  op.cost = cost;
  op.inplace = {{0, 0}};
  op.row_cuts = CutPerElement;
  return op;
}

Operator UnaryGrad(absl::string_view name, Cost cost) {
  Operator op;
  op.name = name;
  op.min_inputs = op.max_inputs = 2;
  op.infer = InferSamePair;
  op.cost = cost;
  op.row_cuts = CutPerElement;
  op.inplace = {{0, 0}};
  return op;
}

}  // namespace

std::vector<Operator> PointwiseOperators() {
  // Flops of transcendental functions are those of typical polynomials.
  std::vector<Operator> all = {
      Unary("Relu", ReluGradient, PerElement<1>),
      Unary("Sigmoid", SigmoidGradient, PerElement<12>),
      Unary("Tanh", TanhGradient, PerElement<12>),
      Unary("Exp", ExpGradient, PerElement<10>),
      Unary("Log", LogGradient, PerElement<10>),
      Unary("Sqrt", SqrtGradient, PerElement<4>),
      Unary("Neg", NegGradient, PerElement<1>),
      Unary("Abs", AbsGradient, PerElement<1>),
      Unary("Erf", ErfGradient, PerElement<16>),
      Unary("Reciprocal", ReciprocalGradient, PerElement<4>),
      UnaryGrad("ReluGrad", PerElement<1>),
      UnaryGrad("SigmoidGrad", PerElement<3>),
      UnaryGrad("TanhGrad", PerElement<3>),
      UnaryGrad("ErfGrad", PerElement<13>),
  };
  Operator gelu = Unary("Gelu", GeluGradient, PerElement<20>);
  gelu.infer = InferGelu;
  gelu.inplace.clear();
  gelu.attributes = {{"approximate", AttributeKind::kString}};
  all.push_back(gelu);

  Operator gelu_grad = UnaryGrad("GeluGrad", PerElement<30>);
  gelu_grad.infer = InferGeluGrad;
  gelu_grad.attributes = gelu.attributes;
  all.push_back(gelu_grad);

  Operator logical_not = Unary("Not", nullptr, PerElement<1>);
  logical_not.infer = InferNot;
  logical_not.inplace.clear();
  all.push_back(logical_not);

  Operator cast = Unary("Cast", CastGradient, PerElement<1>);
  cast.infer = InferCast;
  cast.inplace.clear();
  cast.attributes = {{"to", AttributeKind::kString, true}};
  all.push_back(cast);
  return all;
}

}  // namespace loadline::models
