// Operators of two or three inputs with NumPy's broadcasting, and their
// gradients as nodes: each operand's gradient is summed over the dimensions in
// which the operand was repeated. Tested in tests/models/infer_test.cc and
// gradient_test.cc.
#include "models/ops/check_types.h"
#include "models/ops/families.h"
#include "models/ops/row_cuts.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

absl::StatusOr<OutputTypes> Broadcast(InputTypes inputs, DType dtype) {
  LOADLINE_ASSIGN_OR_RETURN(std::vector<int64_t> dims,
                            BroadcastDims(inputs[0]->dims, inputs[1]->dims));
  return One(MakeTensorType(dtype, std::move(dims)));
}

absl::Status SameDType(InputTypes inputs, int a, int b) {
  if (inputs[a]->dtype == inputs[b]->dtype) return absl::OkStatus();
  return Refuse("inputs ", a, " and ", b, " are ", inputs[a]->ToString(),
                " and ", inputs[b]->ToString(), ": element types differ");
}

absl::StatusOr<OutputTypes> InferArithmetic(const Node&, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireDType(
      inputs, 0, {DType::kF32, DType::kBF16, DType::kI64, DType::kI32}));
  LOADLINE_RETURN_IF_ERROR(SameDType(inputs, 0, 1));
  return Broadcast(inputs, inputs[0]->dtype);
}

// No bf16: the gradient compares the operands, which comparisons do in f32.
absl::StatusOr<OutputTypes> InferExtreme(const Node&, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(
      RequireDType(inputs, 0, {DType::kF32, DType::kI64, DType::kI32}));
  LOADLINE_RETURN_IF_ERROR(SameDType(inputs, 0, 1));
  return Broadcast(inputs, inputs[0]->dtype);
}

absl::StatusOr<OutputTypes> InferF32(const Node&, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireF32(inputs));
  return Broadcast(inputs, DType::kF32);
}

absl::StatusOr<OutputTypes> InferEqual(const Node&, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireDType(
      inputs, 0, {DType::kF32, DType::kI64, DType::kI32, DType::kBool}));
  LOADLINE_RETURN_IF_ERROR(SameDType(inputs, 0, 1));
  return Broadcast(inputs, DType::kBool);
}

absl::StatusOr<OutputTypes> InferCompare(const Node&, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(
      RequireDType(inputs, 0, {DType::kF32, DType::kI64, DType::kI32}));
  LOADLINE_RETURN_IF_ERROR(SameDType(inputs, 0, 1));
  return Broadcast(inputs, DType::kBool);
}

absl::StatusOr<OutputTypes> InferLogical(const Node&, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireDType(inputs, 0, {DType::kBool}));
  LOADLINE_RETURN_IF_ERROR(RequireDType(inputs, 1, {DType::kBool}));
  return Broadcast(inputs, DType::kBool);
}

absl::StatusOr<OutputTypes> InferBitwise(const Node&, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(
      RequireDType(inputs, 0, {DType::kI64, DType::kI32, DType::kU8}));
  LOADLINE_RETURN_IF_ERROR(SameDType(inputs, 0, 1));
  return Broadcast(inputs, inputs[0]->dtype);
}

absl::StatusOr<OutputTypes> InferWhere(const Node&, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireDType(inputs, 0, {DType::kBool}));
  LOADLINE_RETURN_IF_ERROR(SameDType(inputs, 1, 2));
  LOADLINE_ASSIGN_OR_RETURN(std::vector<int64_t> dims,
                            BroadcastDims(inputs[1]->dims, inputs[2]->dims));
  LOADLINE_ASSIGN_OR_RETURN(dims, BroadcastDims(inputs[0]->dims, dims));
  return One(MakeTensorType(inputs[1]->dtype, std::move(dims)));
}

// Sums `full` down to input i's shape and sets it as that input's gradient.
absl::Status SetSummed(GradientContext& c, int i, ValueId full) {
  LOADLINE_ASSIGN_OR_RETURN(ValueId gradient,
                            c.SumTo(full, c.type(c.input(i))));
  c.SetInputGradient(i, gradient);
  return absl::OkStatus();
}

absl::Status AddGradient(GradientContext& c) {
  for (int i : {0, 1}) {
    if (!c.wanted(i)) continue;
    LOADLINE_RETURN_IF_ERROR(SetSummed(c, i, c.output_gradient(0)));
  }
  return absl::OkStatus();
}

absl::Status SubGradient(GradientContext& c) {
  if (c.wanted(0)) {
    LOADLINE_RETURN_IF_ERROR(SetSummed(c, 0, c.output_gradient(0)));
  }
  if (c.wanted(1)) {
    // Sum first: negation is cheaper on fewer elements.
    LOADLINE_ASSIGN_OR_RETURN(
        ValueId sum, c.SumTo(c.output_gradient(0), c.type(c.input(1))));
    LOADLINE_ASSIGN_OR_RETURN(ValueId db, c.Emit("Neg", {sum}));
    c.SetInputGradient(1, db);
  }
  return absl::OkStatus();
}

absl::Status MulGradient(GradientContext& c) {
  for (int i : {0, 1}) {
    if (!c.wanted(i)) continue;
    LOADLINE_ASSIGN_OR_RETURN(
        ValueId full, c.Emit("Mul", {c.output_gradient(0), c.input(1 - i)}));
    LOADLINE_RETURN_IF_ERROR(SetSummed(c, i, full));
  }
  return absl::OkStatus();
}

// da = dy / b; db = -(dy / b) y, which reads y instead of a.
absl::Status DivGradient(GradientContext& c) {
  LOADLINE_ASSIGN_OR_RETURN(ValueId quotient,
                            c.Emit("Div", {c.output_gradient(0), c.input(1)}));
  if (c.wanted(0)) LOADLINE_RETURN_IF_ERROR(SetSummed(c, 0, quotient));
  if (c.wanted(1)) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId full,
                              c.Emit("Mul", {quotient, c.output(0)}));
    LOADLINE_ASSIGN_OR_RETURN(ValueId sum, c.SumTo(full, c.type(c.input(1))));
    LOADLINE_ASSIGN_OR_RETURN(ValueId db, c.Emit("Neg", {sum}));
    c.SetInputGradient(1, db);
  }
  return absl::OkStatus();
}

// To the larger (`beyond` is "Less") or smaller operand; a tie's gradient is
// halved, as in PyTorch.
absl::Status ExtremeGradient(GradientContext& c, absl::string_view beyond) {
  const ValueId dy = c.output_gradient(0);
  LOADLINE_ASSIGN_OR_RETURN(ValueId zero, c.Scalar(0.0f));
  LOADLINE_ASSIGN_OR_RETURN(ValueId factor, c.Scalar(0.5f));
  LOADLINE_ASSIGN_OR_RETURN(ValueId half, c.Emit("Mul", {dy, factor}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId tie,
                            c.Emit("Equal", {c.input(0), c.input(1)}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId shared, c.Emit("Where", {tie, half, dy}));
  for (int i : {0, 1}) {
    if (!c.wanted(i)) continue;
    LOADLINE_ASSIGN_OR_RETURN(ValueId lost,
                              c.Emit(beyond, {c.input(i), c.input(1 - i)}));
    LOADLINE_ASSIGN_OR_RETURN(ValueId full,
                              c.Emit("Where", {lost, zero, shared}));
    LOADLINE_RETURN_IF_ERROR(SetSummed(c, i, full));
  }
  return absl::OkStatus();
}

absl::Status MaxGradient(GradientContext& c) {
  return ExtremeGradient(c, "Less");
}
absl::Status MinGradient(GradientContext& c) {
  return ExtremeGradient(c, "Greater");
}

// dy * b a^(b-1) for a constant b, without Pow where b is small.
absl::StatusOr<ValueId> PowGradientConstant(GradientContext& c, float b) {
  const ValueId dy = c.output_gradient(0);
  const ValueId a = c.input(0);
  if (b == 0.0f) {
    const Ints dims = c.type(dy).dims;
    LOADLINE_ASSIGN_OR_RETURN(ValueId zero, c.Scalar(0.0f));
    return c.Emit("Expand", {zero}, {{"shape", dims}});
  }
  if (b == 1.0f) return dy;
  LOADLINE_ASSIGN_OR_RETURN(ValueId factor, c.Scalar(b));
  LOADLINE_ASSIGN_OR_RETURN(ValueId scaled, c.Emit("Mul", {dy, factor}));
  if (b == 2.0f) return c.Emit("Mul", {scaled, a});
  if (b == 3.0f) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId once, c.Emit("Mul", {scaled, a}));
    return c.Emit("Mul", {once, a});
  }
  LOADLINE_ASSIGN_OR_RETURN(ValueId exponent, c.Scalar(b - 1.0f));
  LOADLINE_ASSIGN_OR_RETURN(ValueId power, c.Emit("Pow", {a, exponent}));
  return c.Emit("Mul", {scaled, power});
}

// da = dy b a^(b-1), 0 where b = 0.
absl::Status PowBaseGradient(GradientContext& c) {
  const ValueId b = c.input(1);
  LOADLINE_ASSIGN_OR_RETURN(ValueId zero, c.Scalar(0.0f));
  LOADLINE_ASSIGN_OR_RETURN(ValueId one, c.Scalar(1.0f));
  LOADLINE_ASSIGN_OR_RETURN(ValueId exponent, c.Emit("Sub", {b, one}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId power,
                            c.Emit("Pow", {c.input(0), exponent}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId slope, c.Emit("Mul", {power, b}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId flat, c.Emit("Equal", {b, zero}));
  LOADLINE_ASSIGN_OR_RETURN(slope, c.Emit("Where", {flat, zero, slope}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId full,
                            c.Emit("Mul", {c.output_gradient(0), slope}));
  return SetSummed(c, 0, full);
}

// db = dy y log(a), 0 where a = 0 and b >= 0 (the limit).
absl::Status PowExponentGradient(GradientContext& c) {
  const ValueId a = c.input(0);
  const ValueId b = c.input(1);
  LOADLINE_ASSIGN_OR_RETURN(ValueId zero, c.Scalar(0.0f));
  LOADLINE_ASSIGN_OR_RETURN(ValueId log, c.Emit("Log", {a}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId slope, c.Emit("Mul", {c.output(0), log}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId at_zero, c.Emit("Equal", {a, zero}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId rising,
                            c.Emit("GreaterOrEqual", {b, zero}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId limit, c.Emit("And", {at_zero, rising}));
  LOADLINE_ASSIGN_OR_RETURN(slope, c.Emit("Where", {limit, zero, slope}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId full,
                            c.Emit("Mul", {c.output_gradient(0), slope}));
  return SetSummed(c, 1, full);
}

absl::Status PowGradient(GradientContext& c) {
  if (c.wanted(0)) {
    const Tensor* exponent = c.constant(c.input(1));
    if (exponent != nullptr && exponent->type.elements() == 1) {
      LOADLINE_ASSIGN_OR_RETURN(
          ValueId full, PowGradientConstant(c, exponent->as<float>()[0]));
      LOADLINE_RETURN_IF_ERROR(SetSummed(c, 0, full));
    } else {
      LOADLINE_RETURN_IF_ERROR(PowBaseGradient(c));
    }
  }
  return c.wanted(1) ? PowExponentGradient(c) : absl::OkStatus();
}

// da = dy; db = -dy times the quotient without its fraction.
absl::Status FmodGradient(GradientContext& c) {
  if (c.wanted(0)) {
    LOADLINE_RETURN_IF_ERROR(SetSummed(c, 0, c.output_gradient(0)));
  }
  if (!c.wanted(1)) return absl::OkStatus();
  LOADLINE_ASSIGN_OR_RETURN(ValueId zero, c.Scalar(0.0f));
  LOADLINE_ASSIGN_OR_RETURN(ValueId quotient,
                            c.Emit("Div", {c.input(0), c.input(1)}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId below, c.Emit("Less", {quotient, zero}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId up, c.Emit("Ceil", {quotient}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId down, c.Emit("Floor", {quotient}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId whole, c.Emit("Where", {below, up, down}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId full,
                            c.Emit("Mul", {c.output_gradient(0), whole}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId sum, c.SumTo(full, c.type(c.input(1))));
  LOADLINE_ASSIGN_OR_RETURN(ValueId db, c.Emit("Neg", {sum}));
  c.SetInputGradient(1, db);
  return absl::OkStatus();
}

// Reads only the condition.
absl::Status WhereGradient(GradientContext& c) {
  const ValueId dy = c.output_gradient(0);
  LOADLINE_ASSIGN_OR_RETURN(ValueId zero, c.Scalar(0.0f));
  if (c.wanted(1)) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId full,
                              c.Emit("Where", {c.input(0), dy, zero}));
    LOADLINE_RETURN_IF_ERROR(SetSummed(c, 1, full));
  }
  if (c.wanted(2)) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId full,
                              c.Emit("Where", {c.input(0), zero, dy}));
    LOADLINE_RETURN_IF_ERROR(SetSummed(c, 2, full));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<Operator> BinaryOperators() {
  std::vector<Operator> all;
  auto add = [&all](absl::string_view name, decltype(Operator::infer) infer,
                    decltype(Operator::gradient) gradient,
                    decltype(Operator::cost) cost) -> Operator& {
    Operator op;
    op.name = name;
    op.min_inputs = op.max_inputs = 2;
    op.infer = infer;
    op.gradient = gradient;
    op.cost = cost;
    op.row_cuts = CutPerElement;
    all.push_back(op);
    return all.back();
  };
  add("Add", InferArithmetic, AddGradient, PerElement<1>).inplace = {{0, 0}};
  add("Sub", InferArithmetic, SubGradient, PerElement<1>).inplace = {{0, 0}};
  add("Mul", InferArithmetic, MulGradient, PerElement<1>).inplace = {{0, 0}};
  add("Div", InferArithmetic, DivGradient, PerElement<4>).inplace = {{0, 0}};
  add("Max", InferExtreme, MaxGradient, PerElement<1>).inplace = {{0, 0}};
  add("Min", InferExtreme, MinGradient, PerElement<1>).inplace = {{0, 0}};
  add("Pow", InferF32, PowGradient, PerElement<20>);
  add("Fmod", InferF32, FmodGradient, PerElement<20>).inplace = {{0, 0}};
  add("Equal", InferEqual, nullptr, PerElement<1>);
  for (absl::string_view name :
       {"Less", "LessOrEqual", "Greater", "GreaterOrEqual"}) {
    add(name, InferCompare, nullptr, PerElement<1>);
  }
  add("And", InferLogical, nullptr, PerElement<1>);
  add("Or", InferLogical, nullptr, PerElement<1>);
  for (absl::string_view name : {"BitwiseAnd", "BitwiseOr", "BitwiseXor"}) {
    add(name, InferBitwise, nullptr, PerElement<1>).inplace = {{0, 0}};
  }
  Operator& where = add("Where", InferWhere, WhereGradient, PerElement<1>);
  where.min_inputs = where.max_inputs = 3;
  return all;
}

}  // namespace loadline::models
