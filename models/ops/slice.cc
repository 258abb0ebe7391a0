// Slice and its gradient. Tested in tests/models/infer_test.cc and
// gradient_test.cc.
#include "models/ops/check_types.h"
#include "models/ops/families.h"
#include "models/ops/row_cuts.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

// Shape of the slice of `dims` that the attributes describe.
absl::StatusOr<std::vector<int64_t>> SlicedDims(const Node& node,
                                                std::vector<int64_t> dims) {
  const Ints starts = node.attributes.IntList("starts");
  const Ints ends = node.attributes.IntList("ends");
  const Ints axes = node.attributes.IntList("axes");
  const Ints steps = node.attributes.IntList("steps");
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size()) {
    return Refuse(
        "attributes starts, ends, axes and steps are not of one length");
  }
  std::vector<bool> seen(dims.size(), false);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i];
    if (axis < 0 || axis >= static_cast<int64_t>(dims.size()) ||
        seen[static_cast<size_t>(axis)]) {
      return Refuse("attribute axes is ", AttributeToText(axes),
                    ", not distinct axes of rank ", dims.size());
    }
    seen[static_cast<size_t>(axis)] = true;
    int64_t& dim = dims[static_cast<size_t>(axis)];
    if (starts[i] < 0 || starts[i] > ends[i] || ends[i] > dim) {
      return Refuse("slice ", starts[i], " to ", ends[i], " leaves axis ", axis,
                    " of ", dim);
    }
    if (steps[i] <= 0) return Refuse("step ", steps[i], " is not positive");
    const int64_t length = ends[i] - starts[i];
    dim = length == 0 ? 0 : (length - 1) / steps[i] + 1;
  }
  return dims;
}

absl::StatusOr<OutputTypes> InferSlice(const Node& node, InputTypes inputs) {
  LOADLINE_ASSIGN_OR_RETURN(std::vector<int64_t> dims,
                            SlicedDims(node, inputs[0]->dims));
  return One(MakeTensorType(inputs[0]->dtype, std::move(dims)));
}

absl::StatusOr<OutputTypes> InferSliceGrad(const Node& node,
                                           InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireFloat(inputs));
  LOADLINE_ASSIGN_OR_RETURN(TensorType type,
                            CheckedShape(node, inputs[0]->dtype));
  LOADLINE_ASSIGN_OR_RETURN(std::vector<int64_t> dims,
                            SlicedDims(node, type.dims));
  LOADLINE_RETURN_IF_ERROR(RequireDims("dy", *inputs[0], dims));
  return OutputTypes{std::move(type)};
}

absl::Status SliceGradient(GradientContext& c) {
  Attributes attributes = c.forward().attributes;
  attributes.Set("shape", c.type(c.input(0)).dims);
  LOADLINE_ASSIGN_OR_RETURN(
      ValueId dx,
      c.Emit("SliceGrad", {c.output_gradient(0)}, std::move(attributes)));
  c.SetInputGradient(0, dx);
  return absl::OkStatus();
}

// As a forward operator SliceGrad pads with zeros.
absl::Status SliceGradGradient(GradientContext& c) {
  Attributes attributes = c.forward().attributes;
  attributes.Erase("shape");
  LOADLINE_ASSIGN_OR_RETURN(ValueId dx, c.Emit("Slice", {c.output_gradient(0)},
                                               std::move(attributes)));
  c.SetInputGradient(0, dx);
  return absl::OkStatus();
}

// Only the slice is read.
OperatorCost SliceCost(const Node&, InputTypes,
                       absl::Span<const TensorType> outputs) {
  OperatorCost cost;
  cost.bytes = 2 * outputs[0].bytes();
  return cost;
}

}  // namespace

std::vector<Operator> SliceOperators() {
  Operator slice;
  slice.name = "Slice";
  slice.infer = InferSlice;
  slice.gradient = SliceGradient;
  slice.cost = SliceCost;
  slice.row_cuts = CutAlongAxis;
  // Not kAxes: sorting the axes would separate them from their starts.
  slice.attributes = {{"starts", AttributeKind::kInts, true},
                      {"ends", AttributeKind::kInts, true},
                      {"axes", AttributeKind::kInts, true},
                      {"steps", AttributeKind::kInts, true}};
  Operator grad;
  grad.name = "SliceGrad";
  grad.infer = InferSliceGrad;
  grad.row_cuts = CutAlongAxis;
  grad.gradient = SliceGradGradient;
  grad.attributes = slice.attributes;
  grad.attributes.push_back({"shape", AttributeKind::kInts, true});
  return {slice, grad};
}

}  // namespace loadline::models
