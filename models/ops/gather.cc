// Gather (embedding lookup) with its gradient, Scatter and ScatterReduce.
// Tested in tests/models/infer_test.cc and gradient_test.cc.
#include <string>

#include "models/ops/check_types.h"
#include "models/ops/families.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

// data's dimensions, with `axis` replaced by the dimensions of the indices.
absl::StatusOr<std::vector<int64_t>> GatheredDims(
    const Node& node, const std::vector<int64_t>& data,
    const std::vector<int64_t>& indices) {
  LOADLINE_ASSIGN_OR_RETURN(
      int64_t axis,
      CheckedAxis(node, "axis", static_cast<int64_t>(data.size())));
  std::vector<int64_t> dims(data.begin(), data.begin() + axis);
  dims.insert(dims.end(), indices.begin(), indices.end());
  dims.insert(dims.end(), data.begin() + axis + 1, data.end());
  return dims;
}

absl::StatusOr<OutputTypes> InferGather(const Node& node, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireDType(inputs, 1, {DType::kI64, DType::kI32}));
  LOADLINE_ASSIGN_OR_RETURN(
      std::vector<int64_t> dims,
      GatheredDims(node, inputs[0]->dims, inputs[1]->dims));
  return One(MakeTensorType(inputs[0]->dtype, std::move(dims)));
}

absl::StatusOr<OutputTypes> InferGatherGrad(const Node& node,
                                            InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireDType(inputs, 0, {DType::kF32}));
  LOADLINE_RETURN_IF_ERROR(RequireDType(inputs, 1, {DType::kI64, DType::kI32}));
  LOADLINE_ASSIGN_OR_RETURN(TensorType type, CheckedShape(node, DType::kF32));
  LOADLINE_ASSIGN_OR_RETURN(std::vector<int64_t> dims,
                            GatheredDims(node, type.dims, inputs[1]->dims));
  LOADLINE_RETURN_IF_ERROR(RequireDims("dy", *inputs[0], dims));
  return OutputTypes{std::move(type)};
}

absl::Status GatherGradient(GradientContext& c) {
  if (!c.wanted(0)) return absl::OkStatus();
  const Ints shape = c.type(c.input(0)).dims;
  LOADLINE_ASSIGN_OR_RETURN(
      ValueId ddata, c.Emit("GatherGrad", {c.output_gradient(0), c.input(1)},
                            {{"axis", c.forward().attributes.Int("axis", 0)},
                             {"shape", shape}}));
  const int64_t padding_row = c.forward().attributes.Int("padding_row", -1);
  if (padding_row >= 0) {
    // PyTorch's padding_idx: the row gets no gradient here. Another use of the
    // table, such as a tied head, may give it one.
    LOADLINE_ASSIGN_OR_RETURN(const ValueId zero, c.Scalar(0.0f));
    Ints row = shape;
    row[0] = 1;
    LOADLINE_ASSIGN_OR_RETURN(const ValueId zeros,
                              c.Emit("Expand", {zero}, {{"shape", row}}));
    const int64_t start =
        padding_row * (TensorType{DType::kF32, row}.elements());
    LOADLINE_ASSIGN_OR_RETURN(ddata,
                              c.Emit("WriteRows", {zeros, ddata},
                                     {{"start", start}, {"shape", shape}}));
  }
  c.SetInputGradient(0, ddata);
  return absl::OkStatus();
}

// As a forward operator GatherGrad adds up rows.
absl::Status GatherGradGradient(GradientContext& c) {
  if (!c.wanted(0)) return absl::OkStatus();
  LOADLINE_ASSIGN_OR_RETURN(
      ValueId dx, c.Emit("Gather", {c.output_gradient(0), c.input(1)},
                         {{"axis", c.forward().attributes.Int("axis", 0)}}));
  c.SetInputGradient(0, dx);
  return absl::OkStatus();
}

absl::StatusOr<OutputTypes> InferScatter(const Node&, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireDType(inputs, 1, {DType::kI64, DType::kI32}));
  if (inputs[0]->rank() < 1 || inputs[1]->rank() != 1) {
    return Refuse("data is ", inputs[0]->ToString(), " and indices are ",
                  inputs[1]->ToString(), ", not rows and a list of them");
  }
  TensorType updates = *inputs[0];
  updates.dims[0] = inputs[1]->dims[0];
  LOADLINE_RETURN_IF_ERROR(RequireType(inputs, 2, updates));
  return OutputTypes{*inputs[0]};
}

absl::StatusOr<ValueId> RowsOf(GradientContext& c, ValueId from, ValueId rows) {
  return c.Emit("Gather", {from, rows}, {{"axis", int64_t{0}}});
}

// Reads only the indices. A row that several updates write gives its gradient
// to each of them, as in PyTorch.
absl::Status ScatterGradient(GradientContext& c) {
  const ValueId dy = c.output_gradient(0);
  if (c.wanted(0)) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId zero, c.Scalar(0.0f));
    const Ints written = c.type(c.input(2)).dims;
    LOADLINE_ASSIGN_OR_RETURN(ValueId zeros,
                              c.Emit("Expand", {zero}, {{"shape", written}}));
    LOADLINE_ASSIGN_OR_RETURN(ValueId ddata,
                              c.Emit("Scatter", {dy, c.input(1), zeros}));
    c.SetInputGradient(0, ddata);
  }
  if (c.wanted(2)) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId dupdates, RowsOf(c, dy, c.input(1)));
    c.SetInputGradient(2, dupdates);
  }
  return absl::OkStatus();
}

absl::StatusOr<OutputTypes> InferScatterReduce(const Node& node,
                                               InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireDType(inputs, 0, {DType::kF32}));
  const std::string reduction = node.attributes.String("reduction", "");
  if (reduction != "max" && reduction != "min" && reduction != "mul") {
    return Refuse("attribute reduction is '", reduction,
                  "', not max, min or mul");
  }
  return InferScatter(node, inputs);
}

absl::StatusOr<ValueId> SumByRow(GradientContext& c, ValueId of, ValueId rows,
                                 const Ints& shape) {
  return c.Emit("GatherGrad", {of, rows},
                {{"axis", int64_t{0}}, {"shape", shape}});
}

absl::StatusOr<ValueId> ToF32(GradientContext& c, ValueId truth) {
  return c.Emit("Cast", {truth}, {{"to", std::string("f32")}});
}

// The extreme's gradient is shared evenly by everything that equals it, data
// and updates alike, as in PyTorch.
absl::Status ScatterExtremeGradient(GradientContext& c) {
  const ValueId data = c.input(0);
  const ValueId rows = c.input(1);
  const ValueId updates = c.input(2);
  const ValueId y = c.output(0);
  const Ints shape = c.type(data).dims;
  const auto equal = [&](ValueId a, ValueId b) -> absl::StatusOr<ValueId> {
    LOADLINE_ASSIGN_OR_RETURN(const ValueId same, c.Emit("Equal", {a, b}));
    return ToF32(c, same);
  };
  LOADLINE_ASSIGN_OR_RETURN(const ValueId reached, RowsOf(c, y, rows));
  LOADLINE_ASSIGN_OR_RETURN(const ValueId by_data, equal(data, y));
  LOADLINE_ASSIGN_OR_RETURN(const ValueId by_update, equal(updates, reached));
  LOADLINE_ASSIGN_OR_RETURN(ValueId ties, SumByRow(c, by_update, rows, shape));
  LOADLINE_ASSIGN_OR_RETURN(ties, c.Emit("Add", {ties, by_data}));
  LOADLINE_ASSIGN_OR_RETURN(const ValueId share,
                            c.Emit("Div", {c.output_gradient(0), ties}));
  if (c.wanted(0)) {
    LOADLINE_ASSIGN_OR_RETURN(const ValueId ddata,
                              c.Emit("Mul", {share, by_data}));
    c.SetInputGradient(0, ddata);
  }
  if (c.wanted(2)) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId dupdates, RowsOf(c, share, rows));
    LOADLINE_ASSIGN_OR_RETURN(dupdates, c.Emit("Mul", {dupdates, by_update}));
    c.SetInputGradient(2, dupdates);
  }
  return absl::OkStatus();
}

// The product of all factors but one: the product divided by it, or, where it
// is the only zero, the product with 1 in its place. So nothing is divided by
// zero.
absl::Status ScatterProductGradient(GradientContext& c) {
  const ValueId dy = c.output_gradient(0);
  const ValueId data = c.input(0);
  const ValueId rows = c.input(1);
  const ValueId updates = c.input(2);
  const Ints shape = c.type(data).dims;
  const auto product = [&](ValueId from, ValueId by) {
    return c.Emit("ScatterReduce", {from, rows, by},
                  {{"reduction", std::string("mul")}});
  };
  LOADLINE_ASSIGN_OR_RETURN(const ValueId zero, c.Scalar(0.0f));
  LOADLINE_ASSIGN_OR_RETURN(const ValueId one, c.Scalar(1.0f));
  if (c.wanted(0)) {
    LOADLINE_ASSIGN_OR_RETURN(const ValueId is_zero,
                              c.Emit("Equal", {data, zero}));
    LOADLINE_ASSIGN_OR_RETURN(const ValueId divisor,
                              c.Emit("Where", {is_zero, one, data}));
    LOADLINE_ASSIGN_OR_RETURN(const ValueId all, product(divisor, updates));
    LOADLINE_ASSIGN_OR_RETURN(ValueId ddata, c.Emit("Div", {all, divisor}));
    LOADLINE_ASSIGN_OR_RETURN(ddata, c.Emit("Mul", {dy, ddata}));
    c.SetInputGradient(0, ddata);
  }
  if (c.wanted(2)) {
    LOADLINE_ASSIGN_OR_RETURN(const ValueId is_zero,
                              c.Emit("Equal", {updates, zero}));
    LOADLINE_ASSIGN_OR_RETURN(ValueId zeros, ToF32(c, is_zero));
    LOADLINE_ASSIGN_OR_RETURN(zeros, SumByRow(c, zeros, rows, shape));
    LOADLINE_ASSIGN_OR_RETURN(zeros, RowsOf(c, zeros, rows));
    LOADLINE_ASSIGN_OR_RETURN(const ValueId one_zero,
                              c.Emit("Equal", {zeros, one}));
    LOADLINE_ASSIGN_OR_RETURN(const ValueId only,
                              c.Emit("And", {is_zero, one_zero}));
    LOADLINE_ASSIGN_OR_RETURN(const ValueId others,
                              c.Emit("Where", {only, one, updates}));
    LOADLINE_ASSIGN_OR_RETURN(const ValueId divisor,
                              c.Emit("Where", {is_zero, one, updates}));
    LOADLINE_ASSIGN_OR_RETURN(ValueId without, product(data, others));
    LOADLINE_ASSIGN_OR_RETURN(without, c.Emit("Mul", {dy, without}));
    LOADLINE_ASSIGN_OR_RETURN(without, RowsOf(c, without, rows));
    LOADLINE_ASSIGN_OR_RETURN(ValueId with, c.Emit("Mul", {dy, c.output(0)}));
    LOADLINE_ASSIGN_OR_RETURN(with, RowsOf(c, with, rows));
    LOADLINE_ASSIGN_OR_RETURN(with, c.Emit("Div", {with, divisor}));
    LOADLINE_ASSIGN_OR_RETURN(const ValueId dupdates,
                              c.Emit("Where", {only, without, with}));
    c.SetInputGradient(2, dupdates);
  }
  return absl::OkStatus();
}

absl::Status ScatterReduceGradient(GradientContext& c) {
  return c.forward().attributes.String("reduction", "") == "mul"
             ? ScatterProductGradient(c)
             : ScatterExtremeGradient(c);
}

// Only the selected rows of data are read.
OperatorCost GatherCost(const Node&, InputTypes inputs,
                        absl::Span<const TensorType> outputs) {
  OperatorCost cost;
  cost.bytes = 2 * outputs[0].bytes() + inputs[1]->bytes();
  return cost;
}

OperatorCost GatherGradCost(const Node&, InputTypes inputs,
                            absl::Span<const TensorType> outputs) {
  OperatorCost cost;
  cost.flops = static_cast<double>(inputs[0]->elements());
  // Zeroed once; then read, added to and written at each index.
  cost.bytes = 3 * inputs[0]->bytes() + inputs[1]->bytes() + outputs[0].bytes();
  return cost;
}

}  // namespace

std::vector<Operator> GatherOperators() {
  Operator gather;
  gather.name = "Gather";
  gather.min_inputs = gather.max_inputs = 2;
  gather.infer = InferGather;
  gather.gradient = GatherGradient;
  gather.cost = GatherCost;
  gather.attributes = {{"axis", AttributeKind::kAxis, true},
                       {"padding_row", AttributeKind::kInt}};
  Operator grad;
  grad.name = "GatherGrad";
  grad.min_inputs = grad.max_inputs = 2;
  grad.infer = InferGatherGrad;
  grad.gradient = GatherGradGradient;
  grad.cost = GatherGradCost;
  // The axis refers to `shape`, not to dy, so it is never negative.
  grad.attributes = {{"axis", AttributeKind::kInt, true},
                     {"shape", AttributeKind::kInts, true}};
  Operator scatter;
  scatter.name = "Scatter";
  scatter.min_inputs = scatter.max_inputs = 3;
  scatter.infer = InferScatter;
  scatter.gradient = ScatterGradient;
  scatter.inplace = {{0, 0}};
  Operator reduce = scatter;
  reduce.name = "ScatterReduce";
  reduce.infer = InferScatterReduce;
  reduce.gradient = ScatterReduceGradient;
  reduce.attributes = {{"reduction", AttributeKind::kString, true}};
  return {gather, grad, scatter, reduce};
}

}  // namespace loadline::models
