// Operators that only move or rename elements: Reshape (a view), Transpose,
// Concat, Split, Expand. Tested in tests/models/infer_test.cc and
// gradient_test.cc.
#include "models/ops/check_types.h"
#include "models/ops/families.h"
#include "models/ops/row_cuts.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

absl::StatusOr<OutputTypes> InferReshape(const Node& node, InputTypes inputs) {
  LOADLINE_ASSIGN_OR_RETURN(TensorType type,
                            CheckedShape(node, inputs[0]->dtype));
  if (type.elements() != inputs[0]->elements()) {
    return Refuse("attribute shape makes ", type.ToString(), " of ",
                  inputs[0]->ToString());
  }
  return OutputTypes{std::move(type)};
}

absl::Status ReshapeGradient(GradientContext& c) {
  const Ints shape = c.type(c.input(0)).dims;
  LOADLINE_ASSIGN_OR_RETURN(
      ValueId dx,
      c.Emit("Reshape", {c.output_gradient(0)}, {{"shape", shape}}));
  c.SetInputGradient(0, dx);
  return absl::OkStatus();
}

absl::StatusOr<OutputTypes> InferTranspose(const Node& node,
                                           InputTypes inputs) {
  const Ints perm = node.attributes.IntList("perm");
  const std::vector<int64_t>& dims = inputs[0]->dims;
  std::vector<bool> seen(dims.size(), false);
  std::vector<int64_t> result;
  for (int64_t axis : perm) {
    if (axis < 0 || axis >= inputs[0]->rank() ||
        seen[static_cast<size_t>(axis)]) {
      break;
    }
    seen[static_cast<size_t>(axis)] = true;
    result.push_back(dims[static_cast<size_t>(axis)]);
  }
  if (result.size() != dims.size() || perm.size() != dims.size()) {
    return Refuse("attribute perm is ", AttributeToText(perm),
                  ", not a permutation of the axes of ", inputs[0]->ToString());
  }
  return One(MakeTensorType(inputs[0]->dtype, std::move(result)));
}

absl::Status TransposeGradient(GradientContext& c) {
  const Ints perm = c.forward().attributes.IntList("perm");
  Ints inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) {
    inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  }
  LOADLINE_ASSIGN_OR_RETURN(
      ValueId dx,
      c.Emit("Transpose", {c.output_gradient(0)}, {{"perm", inverse}}));
  c.SetInputGradient(0, dx);
  return absl::OkStatus();
}

absl::StatusOr<OutputTypes> InferConcat(const Node& node, InputTypes inputs) {
  LOADLINE_ASSIGN_OR_RETURN(int64_t axis,
                            CheckedAxis(node, "axis", inputs[0]->rank()));
  TensorType type = *inputs[0];
  for (size_t i = 1; i < inputs.size(); ++i) {
    TensorType next = *inputs[i];
    int64_t along = 0;
    if (next.rank() == type.rank()) {
      std::swap(along, next.dims[static_cast<size_t>(axis)]);
      next.dims[static_cast<size_t>(axis)] =
          type.dims[static_cast<size_t>(axis)];
    }
    if (next != type) {
      return Refuse("input ", i, " is ", inputs[i]->ToString(),
                    ", which does not join ", inputs[0]->ToString(),
                    " along axis ", axis);
    }
    if (__builtin_add_overflow(type.dims[static_cast<size_t>(axis)], along,
                               &type.dims[static_cast<size_t>(axis)])) {
      return Refuse("the joined dimension is beyond int64");
    }
  }
  return One(MakeTensorType(type.dtype, std::move(type.dims)));
}

absl::Status ConcatGradient(GradientContext& c) {
  const int64_t axis = c.forward().attributes.Int("axis", 0);
  int64_t start = 0;
  for (size_t i = 0; i < c.forward().inputs.size(); ++i) {
    const int64_t end =
        start + c.type(c.input(i)).dims[static_cast<size_t>(axis)];
    if (c.wanted(i)) {
      LOADLINE_ASSIGN_OR_RETURN(ValueId dx,
                                c.Emit("Slice", {c.output_gradient(0)},
                                       {{"starts", Ints{start}},
                                        {"ends", Ints{end}},
                                        {"axes", Ints{axis}},
                                        {"steps", Ints{1}}}));
      c.SetInputGradient(i, dx);
    }
    start = end;
  }
  return absl::OkStatus();
}

absl::StatusOr<OutputTypes> InferSplit(const Node& node, InputTypes inputs) {
  LOADLINE_ASSIGN_OR_RETURN(int64_t axis,
                            CheckedAxis(node, "axis", inputs[0]->rank()));
  const Ints sizes = node.attributes.IntList("sizes");
  int64_t rest = inputs[0]->dims[static_cast<size_t>(axis)];
  OutputTypes types;
  for (int64_t size : sizes) {
    if (size < 0 || size > rest) break;
    rest -= size;
    types.push_back(*inputs[0]);
    types.back().dims[static_cast<size_t>(axis)] = size;
  }
  if (types.empty() || types.size() != sizes.size() || rest != 0) {
    return Refuse("attribute sizes is ", AttributeToText(sizes),
                  ", which does not add up to axis ", axis, " of ",
                  inputs[0]->ToString());
  }
  return types;
}

absl::Status SplitGradient(GradientContext& c) {
  std::vector<ValueId> parts;
  for (size_t i = 0; i < c.forward().outputs.size(); ++i) {
    ValueId part = c.output_gradient(i);
    if (part == kNoValue) {
      const Ints shape = c.type(c.output(i)).dims;
      LOADLINE_ASSIGN_OR_RETURN(ValueId zero, c.Scalar(0.0f));
      const DType dtype = c.type(c.output(i)).dtype;
      if (dtype != DType::kF32) {
        LOADLINE_ASSIGN_OR_RETURN(
            zero,
            c.Emit("Cast", {zero}, {{"to", std::string(DTypeName(dtype))}}));
      }
      LOADLINE_ASSIGN_OR_RETURN(part,
                                c.Emit("Expand", {zero}, {{"shape", shape}}));
    }
    parts.push_back(part);
  }
  LOADLINE_ASSIGN_OR_RETURN(
      ValueId dx, c.Emit("Concat", std::move(parts),
                         {{"axis", c.forward().attributes.Int("axis", 0)}}));
  c.SetInputGradient(0, dx);
  return absl::OkStatus();
}

absl::StatusOr<OutputTypes> InferExpand(const Node& node, InputTypes inputs) {
  LOADLINE_ASSIGN_OR_RETURN(TensorType type,
                            CheckedShape(node, inputs[0]->dtype));
  const absl::StatusOr<std::vector<int64_t>> dims =
      BroadcastDims(inputs[0]->dims, type.dims);
  if (!dims.ok() || *dims != type.dims) {
    return Refuse("attribute shape makes ", type.ToString(), ", to which ",
                  inputs[0]->ToString(), " does not broadcast");
  }
  return OutputTypes{std::move(type)};
}

absl::Status ExpandGradient(GradientContext& c) {
  LOADLINE_ASSIGN_OR_RETURN(ValueId dx,
                            c.SumTo(c.output_gradient(0), c.type(c.input(0))));
  c.SetInputGradient(0, dx);
  return absl::OkStatus();
}

}  // namespace

std::vector<Operator> ShapeOperators() {
  Operator reshape;
  reshape.name = "Reshape";
  reshape.infer = InferReshape;
  reshape.gradient = ReshapeGradient;
  reshape.view = true;
  reshape.row_cuts = CutReshape;
  reshape.attributes = {{"shape", AttributeKind::kInts, true},
                        {"detached", AttributeKind::kInt}};

  Operator transpose;
  transpose.name = "Transpose";
  transpose.infer = InferTranspose;
  transpose.gradient = TransposeGradient;
  transpose.row_cuts = CutTranspose;
  transpose.attributes = {{"perm", AttributeKind::kInts, true}};

  Operator concat;
  concat.name = "Concat";
  concat.max_inputs = -1;
  concat.infer = InferConcat;
  concat.gradient = ConcatGradient;
  concat.row_cuts = CutAlongAxis;
  concat.attributes = {{"axis", AttributeKind::kAxis, true},
                       {"of_parts", AttributeKind::kInt}};

  Operator split;
  split.name = "Split";
  split.infer = InferSplit;
  split.gradient = SplitGradient;
  split.row_cuts = CutAlongAxis;
  split.attributes = {{"axis", AttributeKind::kAxis, true},
                      {"sizes", AttributeKind::kInts, true}};

  Operator expand;
  expand.name = "Expand";
  expand.infer = InferExpand;
  expand.gradient = ExpandGradient;
  expand.row_cuts = CutPerElement;
  expand.attributes = {{"shape", AttributeKind::kInts, true}};
  return {reshape, transpose, concat, split, expand};
}

}  // namespace loadline::models
