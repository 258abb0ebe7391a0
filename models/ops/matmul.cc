// MatMul (NumPy's rules, with transposition as flags) and Gemm. The gradients
// are products of the same kind, with flags instead of Transpose nodes. Also
// the fused products that passes make: with the gradient of a bias or of Gelu,
// and added to what other parts of the rows gave. Tested in
// tests/models/infer_test.cc, gradient_test.cc and gradient_products_test.cc.
#include "models/ops/check_types.h"
#include "models/ops/families.h"
#include "models/ops/row_cuts.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

// The last two dimensions, after transposition, and the leading ones.
struct Matrices {
  std::vector<int64_t> batch;
  int64_t rows = 1;
  int64_t columns = 1;
};

// A vector is one row on the left side and one column on the right.
Matrices Split(const TensorType& type, bool transposed, bool left) {
  const std::vector<int64_t>& dims = type.dims;
  if (dims.size() == 1) {
    return left ? Matrices{{}, 1, dims[0]} : Matrices{{}, dims[0], 1};
  }
  Matrices m{{dims.begin(), dims.end() - 2},
             dims[dims.size() - 2],
             dims[dims.size() - 1]};
  if (transposed) std::swap(m.rows, m.columns);
  return m;
}

absl::StatusOr<OutputTypes> InferMatMul(const Node& node, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireFloat(inputs));
  for (int i : {0, 1}) {
    if (inputs[i]->rank() == 0) return Refuse("input ", i, " is a scalar");
    if (inputs[i]->rank() == 1 &&
        node.attributes.Flag(i == 0 ? "trans_a" : "trans_b")) {
      return Refuse("input ", i, " is a vector and cannot be transposed");
    }
  }
  const Matrices a = Split(*inputs[0], node.attributes.Flag("trans_a"), true);
  const Matrices b = Split(*inputs[1], node.attributes.Flag("trans_b"), false);
  if (a.columns != b.rows) {
    return Refuse("inner dimensions of ", inputs[0]->ToString(), " and ",
                  inputs[1]->ToString(), " differ: ", a.columns, " and ",
                  b.rows);
  }
  LOADLINE_ASSIGN_OR_RETURN(std::vector<int64_t> dims,
                            BroadcastDims(a.batch, b.batch));
  if (inputs[0]->rank() > 1) dims.push_back(a.rows);
  if (inputs[1]->rank() > 1) dims.push_back(b.columns);
  return One(MakeTensorType(inputs[0]->dtype, std::move(dims)));
}

absl::StatusOr<ValueId> ReshapeTo(GradientContext& c, ValueId value,
                                  const Ints& dims) {
  if (c.type(value).dims == dims) return value;
  return c.Emit("Reshape", {value}, {{"shape", dims}});
}

absl::StatusOr<ValueId> Product(GradientContext& c, ValueId a, ValueId b,
                                bool trans_a, bool trans_b) {
  return c.Emit("MatMul", {a, b},
                {{"trans_a", int64_t{trans_a}}, {"trans_b", int64_t{trans_b}}});
}

// Operands of a product y = op(a) op(b), with vectors as matrices.
struct Operands {
  ValueId a, b, dy;
  bool trans_a, trans_b;
};

// Merges a's leading dimensions into rows: one product instead of one per
// matrix of the batch and a sum over them.
absl::StatusOr<ValueId> FlatRightGradient(GradientContext& c,
                                          const Operands& o) {
  const Ints a_dims = c.type(o.a).dims;
  const Ints dy_dims = c.type(o.dy).dims;
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < a_dims.size(); ++i) rows *= a_dims[i];
  LOADLINE_ASSIGN_OR_RETURN(ValueId a,
                            ReshapeTo(c, o.a, {rows, a_dims.back()}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId dy,
                            ReshapeTo(c, o.dy, {rows, dy_dims.back()}));
  return o.trans_b ? Product(c, dy, a, true, false)
                   : Product(c, a, dy, true, false);
}

// d op(b) = op(a)' dy, transposed if b is.
absl::StatusOr<ValueId> RightGradient(GradientContext& c, const Operands& o) {
  if (c.type(o.b).rank() == 2 && c.type(o.a).rank() > 2 && !o.trans_a) {
    return FlatRightGradient(c, o);
  }
  return o.trans_b ? Product(c, o.dy, o.a, true, o.trans_a)
                   : Product(c, o.a, o.dy, !o.trans_a, false);
}

// d op(a) = dy op(b)', transposed if a is.
absl::StatusOr<ValueId> LeftGradient(GradientContext& c, const Operands& o) {
  return o.trans_a ? Product(c, o.b, o.dy, o.trans_b, true)
                   : Product(c, o.dy, o.b, false, !o.trans_b);
}

// Sets the gradient of input i from that of its matrix form `operand`.
absl::Status SetFromMatrices(GradientContext& c, int i, ValueId operand,
                             ValueId full) {
  LOADLINE_ASSIGN_OR_RETURN(ValueId summed, c.SumTo(full, c.type(operand)));
  const Ints dims = c.type(c.input(i)).dims;
  LOADLINE_ASSIGN_OR_RETURN(ValueId gradient, ReshapeTo(c, summed, dims));
  c.SetInputGradient(i, gradient);
  return absl::OkStatus();
}

absl::Status MatMulGradient(GradientContext& c) {
  Operands o{c.input(0), c.input(1), c.output_gradient(0),
             c.forward().attributes.Flag("trans_a"),
             c.forward().attributes.Flag("trans_b")};
  const TensorType a = c.type(o.a);
  const TensorType b = c.type(o.b);
  if (a.rank() == 1 || b.rank() == 1) {
    Ints dims = c.type(o.dy).dims;
    if (a.rank() == 1) {
      LOADLINE_ASSIGN_OR_RETURN(o.a, ReshapeTo(c, o.a, {1, a.dims[0]}));
      dims.insert(b.rank() == 1 ? dims.end() : dims.end() - 1, 1);
    }
    if (b.rank() == 1) {
      LOADLINE_ASSIGN_OR_RETURN(o.b, ReshapeTo(c, o.b, {b.dims[0], 1}));
      dims.push_back(1);
    }
    LOADLINE_ASSIGN_OR_RETURN(o.dy, ReshapeTo(c, o.dy, dims));
  }
  if (c.wanted(0)) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId full, LeftGradient(c, o));
    LOADLINE_RETURN_IF_ERROR(SetFromMatrices(c, 0, o.a, full));
  }
  if (c.wanted(1)) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId full, RightGradient(c, o));
    LOADLINE_RETURN_IF_ERROR(SetFromMatrices(c, 1, o.b, full));
  }
  return absl::OkStatus();
}

// op(a) op(b) of two matrices.
absl::StatusOr<TensorType> GemmType(const Node& node, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireFloat(inputs));
  for (int i : {0, 1}) {
    if (inputs[i]->rank() != 2) {
      return Refuse("input ", i, " is ", inputs[i]->ToString(),
                    ", not a matrix");
    }
  }
  const Matrices a = Split(*inputs[0], node.attributes.Flag("transA"), true);
  const Matrices b = Split(*inputs[1], node.attributes.Flag("transB"), false);
  if (a.columns != b.rows) {
    return Refuse("inner dimensions of ", inputs[0]->ToString(), " and ",
                  inputs[1]->ToString(), " differ: ", a.columns, " and ",
                  b.rows);
  }
  return MakeTensorType(inputs[0]->dtype, {a.rows, b.columns});
}

absl::StatusOr<OutputTypes> InferGemm(const Node& node, InputTypes inputs) {
  LOADLINE_ASSIGN_OR_RETURN(TensorType type, GemmType(node, inputs));
  if (inputs.size() > 2 && inputs[2] != nullptr) {
    const absl::StatusOr<std::vector<int64_t>> dims =
        BroadcastDims(type.dims, inputs[2]->dims);
    if (!dims.ok() || *dims != type.dims) {
      return Refuse("input 2 is ", inputs[2]->ToString(),
                    ", which does not broadcast to ", type.ToString());
    }
  }
  return OutputTypes{std::move(type)};
}

absl::StatusOr<OutputTypes> InferGemmBiasGrad(const Node& node,
                                              InputTypes inputs) {
  LOADLINE_ASSIGN_OR_RETURN(TensorType type, GemmType(node, inputs));
  const std::string dy = node.attributes.String("dy", "");
  if (dy != "a" && dy != "b") {
    return Refuse("attribute dy is \"", dy, "\", not \"a\" or \"b\"");
  }
  LOADLINE_ASSIGN_OR_RETURN(
      TensorType db,
      MakeTensorType(type.dtype, {type.dims[dy == "a" ? 0 : 1]}));
  return OutputTypes{std::move(type), std::move(db)};
}

absl::StatusOr<OutputTypes> InferGemmSum(const Node& node, InputTypes inputs) {
  LOADLINE_ASSIGN_OR_RETURN(TensorType type,
                            GemmType(node, inputs.subspan(0, 2)));
  type.dtype = DType::kF32;
  if (inputs.size() > 2 && inputs[2] != nullptr) {
    LOADLINE_RETURN_IF_ERROR(RequireType(inputs, 2, type));
  }
  return OutputTypes{std::move(type)};
}

absl::StatusOr<OutputTypes> InferGemmGeluGrad(const Node& node,
                                              InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(CheckApproximate(node));
  LOADLINE_ASSIGN_OR_RETURN(TensorType type, GemmType(node, inputs));
  if (*inputs[2] != type) {
    return Refuse("input 2 is ", inputs[2]->ToString(), ", and the product ",
                  type.ToString());
  }
  return OutputTypes{std::move(type)};
}

absl::StatusOr<ValueId> GemmProduct(GradientContext& c, ValueId a, ValueId b,
                                    bool trans_a, bool trans_b) {
  return c.Emit("Gemm", {a, b},
                {{"alpha", c.forward().attributes.Float("alpha", 1.0)},
                 {"transA", int64_t{trans_a}},
                 {"transB", int64_t{trans_b}}});
}

absl::Status GemmGradient(GradientContext& c) {
  const ValueId a = c.input(0);
  const ValueId b = c.input(1);
  const ValueId dy = c.output_gradient(0);
  const bool trans_a = c.forward().attributes.Flag("transA");
  const bool trans_b = c.forward().attributes.Flag("transB");
  if (c.wanted(0)) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId da,
                              trans_a ? GemmProduct(c, b, dy, trans_b, true)
                                      : GemmProduct(c, dy, b, false, !trans_b));
    c.SetInputGradient(0, da);
  }
  if (c.wanted(1)) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId db,
                              trans_b ? GemmProduct(c, dy, a, true, trans_a)
                                      : GemmProduct(c, a, dy, !trans_a, false));
    c.SetInputGradient(1, db);
  }
  if (c.forward().inputs.size() > 2 && c.wanted(2)) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId dc, c.SumTo(dy, c.type(c.input(2))));
    const double beta = c.forward().attributes.Float("beta", 1.0);
    if (beta != 1.0) {
      LOADLINE_ASSIGN_OR_RETURN(ValueId factor,
                                c.Scalar(static_cast<float>(beta)));
      LOADLINE_ASSIGN_OR_RETURN(dc, c.Emit("Mul", {dc, factor}));
    }
    c.SetInputGradient(2, dc);
  }
  return absl::OkStatus();
}

OperatorCost ProductCost(const Node& node, InputTypes inputs,
                         absl::Span<const TensorType> outputs) {
  const bool trans =
      node.attributes.Flag(node.op == "MatMul" ? "trans_a" : "transA");
  const Matrices a = Split(*inputs[0], trans, true);
  OperatorCost cost;
  cost.flops = 2.0 * static_cast<double>(outputs[0].elements()) *
               static_cast<double>(a.columns);
  cost.matmul_like = true;
  cost.bytes = BytesReadAndWritten(inputs, outputs);
  return cost;
}

}  // namespace

std::vector<Operator> MatMulOperators() {
  Operator matmul;
  matmul.name = "MatMul";
  matmul.min_inputs = matmul.max_inputs = 2;
  matmul.infer = InferMatMul;
  matmul.gradient = MatMulGradient;
  matmul.cost = ProductCost;
  matmul.row_cuts = CutMatMul;
  matmul.attributes = {{"trans_a", AttributeKind::kInt},
                       {"trans_b", AttributeKind::kInt},
                       {"exact", AttributeKind::kInt}};
  Operator gemm;
  gemm.name = "Gemm";
  gemm.min_inputs = 2;
  gemm.max_inputs = 3;
  gemm.infer = InferGemm;
  gemm.gradient = GemmGradient;
  gemm.cost = ProductCost;
  gemm.row_cuts = CutGemm;
  gemm.attributes = {{"alpha", AttributeKind::kFloat},
                     {"beta", AttributeKind::kFloat},
                     {"transA", AttributeKind::kInt},
                     {"transB", AttributeKind::kInt}};
  Operator bias_grad;
  bias_grad.name = "GemmBiasGrad";
  bias_grad.min_inputs = bias_grad.max_inputs = 2;
  bias_grad.infer = InferGemmBiasGrad;
  bias_grad.cost = ProductCost;
  bias_grad.row_cuts = CutGemm;
  bias_grad.attributes = {{"transA", AttributeKind::kInt},
                          {"transB", AttributeKind::kInt},
                          {"dy", AttributeKind::kString, true}};
  Operator gelu_grad;
  gelu_grad.name = "GemmGeluGrad";
  gelu_grad.min_inputs = gelu_grad.max_inputs = 3;
  gelu_grad.infer = InferGemmGeluGrad;
  gelu_grad.cost = ProductCost;
  gelu_grad.row_cuts = CutGemm;
  gelu_grad.attributes = {{"transA", AttributeKind::kInt},
                          {"transB", AttributeKind::kInt},
                          {"approximate", AttributeKind::kString}};
  Operator sum;
  sum.name = "GemmSum";
  sum.min_inputs = 2;
  sum.max_inputs = 3;
  sum.infer = InferGemmSum;
  sum.cost = ProductCost;
  sum.inplace = {{2, 0}};
  sum.attributes = {{"transA", AttributeKind::kInt},
                    {"transB", AttributeKind::kInt}};
  return {matmul, gemm, bias_grad, gelu_grad, sum};
}

}  // namespace loadline::models
