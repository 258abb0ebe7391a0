// Sums and means over axes. Tested in tests/models/infer_test.cc and
// gradient_test.cc.
#include <algorithm>

#include "models/ops/check_types.h"
#include "models/ops/families.h"
#include "models/ops/row_cuts.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

// For each dimension of x, whether it is reduced.
absl::StatusOr<std::vector<bool>> ReducedDims(const Node& node, int64_t rank) {
  if (!node.attributes.Has("axes")) {
    return std::vector<bool>(static_cast<size_t>(rank), true);
  }
  std::vector<bool> reduced(static_cast<size_t>(rank), false);
  for (int64_t axis : node.attributes.IntList("axes")) {
    if (axis < 0 || axis >= rank) {
      return Refuse("attribute axes has ", axis, ", not an axis of rank ",
                    rank);
    }
    if (reduced[static_cast<size_t>(axis)]) {
      return Refuse("attribute axes has ", axis, " twice");
    }
    reduced[static_cast<size_t>(axis)] = true;
  }
  return reduced;
}

absl::StatusOr<OutputTypes> InferReduce(const Node& node, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireFloat(inputs));
  const std::vector<int64_t>& dims = inputs[0]->dims;
  LOADLINE_ASSIGN_OR_RETURN(std::vector<bool> reduced,
                            ReducedDims(node, inputs[0]->rank()));
  const bool keep = node.attributes.Int("keepdims", 1) != 0;
  std::vector<int64_t> result;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (reduced[i] && node.op == "ReduceMean" && dims[i] == 0) {
      return Refuse("the mean of no elements along axis ", i);
    }
    if (!reduced[i]) {
      result.push_back(dims[i]);
    } else if (keep) {
      result.push_back(1);
    }
  }
  return One(MakeTensorType(inputs[0]->dtype, std::move(result)));
}

// Broadcasts `gradient` over the reduced dimensions of x.
absl::Status SpreadToInput(GradientContext& c, ValueId gradient) {
  const Ints dims = c.type(c.input(0)).dims;
  LOADLINE_ASSIGN_OR_RETURN(
      std::vector<bool> reduced,
      ReducedDims(c.forward(), static_cast<int64_t>(dims.size())));
  Ints kept = dims;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (reduced[i]) kept[i] = 1;
  }
  ValueId dx = gradient;
  if (c.type(dx).dims != kept) {
    LOADLINE_ASSIGN_OR_RETURN(dx, c.Emit("Reshape", {dx}, {{"shape", kept}}));
  }
  if (kept != dims) {
    LOADLINE_ASSIGN_OR_RETURN(dx, c.Emit("Expand", {dx}, {{"shape", dims}}));
  }
  c.SetInputGradient(0, dx);
  return absl::OkStatus();
}

absl::Status ReduceSumGradient(GradientContext& c) {
  return SpreadToInput(c, c.output_gradient(0));
}

absl::Status ReduceMeanGradient(GradientContext& c) {
  const int64_t outputs = std::max<int64_t>(1, c.type(c.output(0)).elements());
  const int64_t count =
      std::max<int64_t>(1, c.type(c.input(0)).elements() / outputs);
  LOADLINE_ASSIGN_OR_RETURN(ValueId share,
                            c.Scalar(1.0f / static_cast<float>(count)));
  LOADLINE_ASSIGN_OR_RETURN(ValueId scaled,
                            c.Emit("Mul", {c.output_gradient(0), share}));
  return SpreadToInput(c, scaled);
}

OperatorCost ReduceCost(const Node&, InputTypes inputs,
                        absl::Span<const TensorType> outputs) {
  OperatorCost cost;
  cost.flops = static_cast<double>(inputs[0]->elements());
  cost.bytes = BytesReadAndWritten(inputs, outputs);
  return cost;
}

}  // namespace

std::vector<Operator> ReduceOperators() {
  Operator sum;
  sum.name = "ReduceSum";
  sum.infer = InferReduce;
  sum.gradient = ReduceSumGradient;
  sum.cost = ReduceCost;
  sum.row_cuts = CutReduce;
  sum.attributes = {{"axes", AttributeKind::kAxes},
                    {"keepdims", AttributeKind::kInt}};
  Operator mean = sum;
  mean.name = "ReduceMean";
  mean.gradient = ReduceMeanGradient;
  return {sum, mean};
}

}  // namespace loadline::models
