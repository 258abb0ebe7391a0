// How operators that only move elements can be cut. Tested in
// tests/conformance/cut_axis_test.cc.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "models/ops/cut_rule.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

absl::StatusOr<NodeCut> CutReshape(const CutCall& c) {
  const auto axis = SameRange(*c.types[0], c.axes[0], c.outputs[0], c.parts);
  if (!axis.has_value()) {
    return c.Refuse("from ", c.types[0]->ToString(), " to ",
                    c.outputs[0].ToString(),
                    " mixes the examples with other axes");
  }
  NodeCut cut = c.Result(*axis);
  cut.inputs[0] = c.axes[0];
  cut.attributes.Set("shape",
                     PartOfShape(c.outputs[0].dims, AxisOf(*axis), c.parts));
  return cut;
}

absl::StatusOr<NodeCut> CutTranspose(const CutCall& c) {
  const Ints perm = c.node.attributes.IntList("perm");
  const auto at = std::find(perm.begin(), perm.end(), c.axes[0]);
  NodeCut cut = c.Result(at - perm.begin());
  cut.inputs[0] = c.axes[0];
  return cut;
}

absl::StatusOr<NodeCut> CutExpand(const CutCall& c) {
  LOADLINE_ASSIGN_OR_RETURN(NodeCut cut, CutPointwise(c));
  cut.attributes.Set("shape",
                     PartOfShape(c.outputs[0].dims, cut.outputs[0], c.parts));
  return cut;
}

// Elements of each block of input i, which is cut.
int64_t BlockOf(const CutCall& c, size_t i) {
  const int64_t cut = c.axes[i];
  return c.types[i]->dims[static_cast<size_t>(AxisOf(cut))] / OuterOf(cut);
}

// Along the axis of the examples, blocks come one after the other.
absl::StatusOr<NodeCut> CutConcat(const CutCall& c) {
  constexpr char kJoins[] = "joins tensors along the axis of the examples";
  const int64_t axis = c.node.attributes.Int("axis", 0);
  const size_t first = c.first_cut();
  if (AxisOf(c.axes[first]) != axis) return CutBesideAxis(c, axis, kJoins);
  int64_t outer = 0;
  for (size_t i = 0; i < c.types.size(); ++i) {
    if (!c.cut(i) || AxisOf(c.axes[i]) != axis ||
        BlockOf(c, i) != BlockOf(c, first)) {
      return c.Refuse(kJoins);
    }
    outer += OuterOf(c.axes[i]);
  }
  NodeCut cut = c.Result(InterleavedAxis(axis, outer));
  cut.inputs.assign(c.axes.begin(), c.axes.end());
  return cut;
}

absl::StatusOr<NodeCut> CutSplit(const CutCall& c) {
  constexpr char kDivides[] = "divides the axis of the examples";
  const int64_t axis = c.node.attributes.Int("axis", 0);
  if (AxisOf(c.axes[0]) != axis) return CutBesideAxis(c, axis, kDivides);
  const int64_t block = BlockOf(c, 0);
  NodeCut cut = c.Result(kWhole);
  Ints sizes = c.node.attributes.IntList("sizes");
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (block == 0 || sizes[i] == 0 || sizes[i] % block != 0) {
      return c.Refuse(kDivides);
    }
    cut.outputs[i] = InterleavedAxis(axis, sizes[i] / block);
    sizes[i] /= c.parts;
  }
  cut.inputs[0] = c.axes[0];
  cut.attributes.Set("sizes", std::move(sizes));
  return cut;
}

// A slice of whole blocks along the axis of the examples: entry `at` of the
// node's axes.
absl::StatusOr<NodeCut> CutSliceOfBlocks(const CutCall& c, size_t at) {
  Ints starts = c.node.attributes.IntList("starts");
  Ints ends = c.node.attributes.IntList("ends");
  const int64_t axis = AxisOf(c.axes[0]);
  const int64_t block = BlockOf(c, 0);
  const int64_t size = c.outputs[0].dims[static_cast<size_t>(axis)];
  if (c.node.attributes.IntList("steps")[at] != 1 || block == 0 || size == 0 ||
      starts[at] % block != 0 || ends[at] % block != 0 || size % block != 0) {
    return c.Refuse("selects some of the examples");
  }
  starts[at] /= c.parts;
  ends[at] /= c.parts;
  NodeCut cut = c.Result(InterleavedAxis(axis, size / block));
  cut.inputs[0] = c.axes[0];
  cut.attributes.Set("starts", std::move(starts));
  cut.attributes.Set("ends", std::move(ends));
  return cut;
}

absl::StatusOr<NodeCut> CutSlice(const CutCall& c) {
  const Ints axes = c.node.attributes.IntList("axes");
  const int64_t axis = AxisOf(c.axes[0]);
  const auto at = std::find(axes.begin(), axes.end(), axis);
  NodeCut cut = c.Result(c.axes[0]);
  cut.inputs[0] = c.axes[0];
  if (at != axes.end()) {
    LOADLINE_ASSIGN_OR_RETURN(
        cut, CutSliceOfBlocks(c, static_cast<size_t>(at - axes.begin())));
  }
  if (c.node.op == "SliceGrad") {
    cut.attributes.Set("shape", PartOfShape(c.outputs[0].dims, axis, c.parts));
  }
  return cut;
}

// The axis of positions, which is `axes[1]` where they are cut, along which
// they have one part after the other.
int64_t AxisOfPositions(const CutCall& c) {
  if (c.cut(1)) return c.axes[1];
  int64_t axis = 0;
  while (axis + 1 < c.rank(1) &&
         c.types[1]->dims[static_cast<size_t>(axis)] == 1) {
    ++axis;
  }
  return axis;
}

// Reads the axis that is cut: each part at positions of its own.
absl::StatusOr<NodeCut> CutGatherOfPart(const CutCall& c, int64_t axis) {
  if (c.rank(1) == 0) return c.Refuse("may read other examples");
  const int64_t own = AxisOfPositions(c);
  NodeCut cut = c.Result(own + axis);
  cut.inputs[0] = axis;
  cut.inputs[1] = own;
  cut.position_shift = c.types[0]->dims[static_cast<size_t>(axis)] / c.parts;
  return cut;
}

absl::StatusOr<NodeCut> CutGather(const CutCall& c) {
  const int64_t axis = c.node.attributes.Int("axis", 0);
  if (c.cut(0) && c.axes[0] == axis) return CutGatherOfPart(c, axis);
  if (c.cut(0) && c.cut(1)) return c.Refuse("may read other examples");
  if (c.cut(1)) {
    NodeCut cut = c.Result(c.axes[1] + axis);
    cut.inputs[1] = c.axes[1];
    return cut;
  }
  NodeCut cut =
      c.Result(c.axes[0] < axis ? c.axes[0] : c.axes[0] - 1 + c.rank(1));
  cut.inputs[0] = c.axes[0];
  return cut;
}

// ONNX's ScatterElements and ScatterND, whose rows and positions are in the
// order of the examples: each part writes its own rows.
absl::StatusOr<NodeCut> CutScatter(const CutCall& c) {
  NodeCut cut = c.Result(0);
  const int64_t rows = c.outputs[0].dims[0];
  cut.position_shift = rows / c.parts;
  for (int64_t& axis : cut.inputs) axis = 0;
  if (c.node.op == "GatherGrad") {
    if (c.node.attributes.Int("axis", 0) != 0 || c.rank(1) != 1) {
      return c.Refuse("adds to rows of other examples");
    }
    cut.attributes.Set("shape", PartOfShape(c.outputs[0].dims, 0, c.parts));
  }
  return cut;
}

}  // namespace

absl::StatusOr<NodeCut> CutBesideAxis(const CutCall& c, int64_t axis,
                                      absl::string_view does) {
  const int64_t cut_axis = c.axes[c.first_cut()];
  if (AxisOf(cut_axis) == axis) return c.Refuse(does);
  NodeCut cut = c.Result(cut_axis);
  for (size_t i = 0; i < c.types.size(); ++i) {
    if (c.has(i)) cut.inputs[i] = cut_axis;
  }
  return cut;
}

CutRule MoveRuleOf(const std::string& op) {
  static const auto& rules = *new std::map<std::string, CutRule>{
      {"Reshape", CutReshape},      {"Transpose", CutTranspose},
      {"Expand", CutExpand},        {"Concat", CutConcat},
      {"Split", CutSplit},          {"Slice", CutSlice},
      {"SliceGrad", CutSlice},      {"Gather", CutGather},
      {"GatherGrad", CutScatter},   {"Scatter", CutScatter},
      {"ScatterReduce", CutScatter}};
  const auto it = rules.find(op);
  return it == rules.end() ? nullptr : it->second;
}

}  // namespace loadline::models
