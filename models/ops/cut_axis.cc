// Every rule first follows the cut from one input to the output, and then from
// the output back to every input, so that inputs that are cut differently are
// found in one place. A rule answers for operators of the forward pass and, as
// they are pointwise, for gradients of curves. Tested in
// tests/conformance/cut_axis_test.cc, which compares parts and whole.
#include "models/ops/cut_axis.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "models/ops/curves.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

struct CutCall {
  const Node& node;
  absl::Span<const TensorType* const> types;
  absl::Span<const TensorType> outputs;
  absl::Span<const int64_t> axes;
  int64_t parts;
  BatchStatistics statistics;

  bool has(size_t i) const { return i < types.size() && types[i] != nullptr; }
  bool cut(size_t i) const { return i < axes.size() && axes[i] != kWhole; }
  int64_t rank(size_t i) const { return types[i]->rank(); }
  size_t first_cut() const {
    size_t i = 0;
    while (axes[i] == kWhole) ++i;
    return i;
  }

  template <typename... Parts>
  absl::Status Refuse(const Parts&... parts_of_text) const {
    return absl::FailedPreconditionError(
        absl::StrCat(node.op, " '", node.name, "' ", parts_of_text...));
  }

  // All inputs whole, outputs cut along `axis`, the node's attributes.
  NodeCut Result(int64_t axis) const {
    return {std::vector<int64_t>(types.size(), kWhole),
            std::vector<int64_t>(outputs.size(), axis), node.attributes};
  }
};

using Rule = absl::StatusOr<NodeCut> (*)(const CutCall& c);

constexpr char kMixes[] = "computes one number from several examples";

// The axis of an operand that broadcasts to `axis` of a result of `rank`.
int64_t BroadcastAxis(const TensorType& operand, int64_t rank, int64_t axis) {
  const int64_t own = axis - (rank - operand.rank());
  return own < 0 || operand.dims[static_cast<size_t>(own)] == 1 ? kWhole : own;
}

// Operands broadcast to the first output.
absl::StatusOr<NodeCut> CutPointwise(const CutCall& c) {
  const size_t first = c.first_cut();
  const int64_t rank = c.outputs[0].rank();
  NodeCut cut = c.Result(c.axes[first] + rank - c.rank(first));
  for (size_t i = 0; i < c.types.size(); ++i) {
    if (c.has(i)) {
      cut.inputs[i] = BroadcastAxis(*c.types[i], rank, cut.outputs[0]);
    }
  }
  return cut;
}

// Elements are numbered through, so only a contiguous part has a range.
absl::StatusOr<NodeCut> CutDropout(const CutCall& c) {
  if (ElementsBefore(*c.types[0], c.axes[0]) != 1) {
    return c.Refuse("draws its random numbers across the examples");
  }
  NodeCut cut = c.Result(c.axes[0]);
  cut.inputs[0] = c.axes[0];
  cut.attributes.Set("offset", c.node.attributes.Int("offset", 0));
  return cut;
}

Ints PartOfShape(Ints shape, int64_t axis, int64_t parts) {
  shape[static_cast<size_t>(axis)] /= parts;
  return shape;
}

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

// All operands and results along one axis, which must not be `axis`.
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

absl::StatusOr<NodeCut> CutAlongAxis(const CutCall& c) {
  return CutBesideAxis(c, c.node.attributes.Int("axis", -1), kMixes);
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

absl::StatusOr<NodeCut> CutReduce(const CutCall& c) {
  const Ints axes = c.node.attributes.IntList("axes");
  const int64_t axis = c.axes[0];
  if (axes.empty() || std::find(axes.begin(), axes.end(), axis) != axes.end()) {
    NodeCut cut = c.Result(c.node.op == "ReduceSum" ? kAdded : kMean);
    cut.inputs[0] = axis;
    return cut;
  }
  int64_t out = axis;
  if (c.node.attributes.Int("keepdims", 1) == 0) {
    out -= std::count_if(axes.begin(), axes.end(),
                         [axis](int64_t a) { return a < axis; });
  }
  NodeCut cut = c.Result(out);
  cut.inputs[0] = axis;
  return cut;
}

// One operand of a product of matrices, whose last two dimensions may be
// exchanged: the axis of its rows (of the result) and of the inner sum.
struct Factor {
  int64_t kept;  // -1: a vector has none
  int64_t summed;
};
Factor FactorOf(const CutCall& c, size_t i, absl::string_view trans) {
  const int64_t rank = c.rank(i);
  if (rank == 1) return {-1, 0};
  const bool swapped = c.node.attributes.Int(trans, 0) != 0;
  const int64_t kept = (i == 0) != swapped ? rank - 2 : rank - 1;
  return {kept, 2 * rank - 3 - kept};
}

// MatMul, and Gemm, which has no further axes.
absl::StatusOr<NodeCut> CutProduct(const CutCall& c) {
  const bool gemm = c.node.op == "Gemm";
  const Factor factors[] = {FactorOf(c, 0, gemm ? "transA" : "trans_a"),
                            FactorOf(c, 1, gemm ? "transB" : "trans_b")};
  const int64_t rank = c.outputs[0].rank();
  // Axes of the result that come from each operand's own; -1: none.
  const int64_t columns = factors[1].kept < 0 ? -1 : rank - 1;
  const int64_t rows = factors[0].kept < 0 ? -1 : rank - (columns < 0 ? 1 : 2);
  const int64_t batch_rank = rank - (rows >= 0) - (columns >= 0);
  const size_t first = c.first_cut();
  const int64_t axis = c.axes[first];
  int64_t out = 0;
  if (first == 2) {
    out = axis + rank - c.rank(2);
  } else if (axis == factors[first].summed) {
    return c.Refuse(kMixes);
  } else if (axis == factors[first].kept) {
    out = first == 0 ? rows : columns;
  } else {
    out = axis + batch_rank - (c.rank(first) - 2);
  }
  NodeCut cut = c.Result(out);
  for (size_t i = 0; i < 2; ++i) {
    if (out == (i == 0 ? rows : columns)) {
      cut.inputs[i] = factors[i].kept;
    } else if (out < batch_rank && c.rank(i) > 2) {
      const int64_t own = out - (batch_rank - (c.rank(i) - 2));
      const bool repeats =
          own < 0 || c.types[i]->dims[static_cast<size_t>(own)] == 1;
      if (!repeats) cut.inputs[i] = own;
    }
  }
  if (c.has(2)) cut.inputs[2] = BroadcastAxis(*c.types[2], rank, out);
  return cut;
}

// Only along the examples; everything but the first input is a parameter.
absl::StatusOr<NodeCut> CutExamples(const CutCall& c) {
  if (c.first_cut() != 0 || c.axes[0] != 0) return c.Refuse(kMixes);
  NodeCut cut = c.Result(0);
  cut.inputs[0] = 0;
  if (c.node.attributes.Has("shape")) {  // ConvInputGrad
    cut.attributes.Set("shape", PartOfShape(c.outputs[0].dims, 0, c.parts));
  }
  return cut;
}

// Pools treat the planes of every example and channel alike.
absl::StatusOr<NodeCut> CutPool(const CutCall& c) {
  if (c.axes[0] > 1) return c.Refuse(kMixes);
  NodeCut cut = c.Result(c.axes[0]);
  cut.inputs[0] = c.axes[0];
  return cut;
}

absl::StatusOr<NodeCut> CutBatchNorm(const CutCall& c) {
  const size_t first = c.first_cut();
  const int64_t axis = first == 0 ? c.axes[0] : 1;
  const bool mixes = c.node.op == "BatchNormTraining" && axis == 0;
  if (axis > 1) return c.Refuse(kMixes);
  if (mixes && c.statistics == BatchStatistics::kOfBatch) {
    return c.Refuse(
        "computes its statistics over the whole batch, and parts of it would "
        "have others; --allow-micro-batch-statistics permits that");
  }
  NodeCut cut = c.Result(axis);
  cut.inputs[0] = axis;
  if (mixes) {
    std::fill(cut.outputs.begin() + 1, cut.outputs.end(), kOwn);
    cut.attributes.Set("part_statistics", int64_t{1});
  }
  if (axis == 1) {
    std::fill(cut.inputs.begin() + 1, cut.inputs.end(), 0);
    std::fill(cut.outputs.begin() + 1, cut.outputs.end(), 0);
  }
  return cut;
}

// One update by one part; passes/repeat_micro_batches.h makes it that of all.
absl::StatusOr<NodeCut> CutRunningStats(const CutCall& c) {
  const Ints own = {kWhole, kWhole, kOwn, kOwn};
  const int64_t count = c.node.attributes.Int("count", 0) / c.parts;
  if (!std::equal(own.begin(), own.end(), c.axes.begin(), c.axes.end())) {
    return c.Refuse("updates statistics of the whole batch");
  }
  if (count < 2) {
    return c.Refuse("has no variance of one element in each part");
  }
  NodeCut cut = c.Result(kWhole);
  cut.inputs = own;
  cut.attributes.Set("count", count);
  return cut;
}

absl::StatusOr<NodeCut> CutLayerNorm(const CutCall& c) {
  if (c.first_cut() != 0 || c.axes[0] >= c.node.attributes.Int("axis", -1)) {
    return c.Refuse(kMixes);
  }
  NodeCut cut = c.Result(c.axes[0]);
  cut.inputs[0] = c.axes[0];
  return cut;
}

absl::StatusOr<NodeCut> CutAttention(const CutCall& c) {
  const bool interleaved = c.node.attributes.Int("interleaved", 0) != 0;
  const size_t first = c.first_cut();
  const int64_t axis = c.axes[first];
  if (first > 2 || axis >= (interleaved ? 1 : c.rank(0) - 2)) {
    return c.Refuse(kMixes);
  }
  NodeCut cut = c.Result(axis);
  std::fill(cut.inputs.begin(), cut.inputs.begin() + 3, axis);
  if (c.has(3)) cut.inputs[3] = BroadcastAxis(*c.types[3], c.rank(0), axis);
  if (c.node.attributes.Float("ratio", 0) > 0) {
    if (ElementsBefore(*c.types[0], axis) != 1) {
      return c.Refuse("draws its random numbers across the examples");
    }
    cut.attributes.Set("offset", c.node.attributes.Int("offset", 0));
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

absl::StatusOr<NodeCut> CutCrossEntropy(const CutCall& c) {
  const int64_t classes = c.node.attributes.Int("class_axis", -1);
  if (!c.has(2)) return c.Refuse("averages over the examples");
  const size_t first = c.first_cut();
  if (first > 1 || (first == 0 && c.axes[0] == classes)) {
    return c.Refuse(kMixes);
  }
  const int64_t axis = c.axes[first];
  const int64_t target = first == 0 ? axis - (axis > classes ? 1 : 0) : axis;
  NodeCut cut = c.Result(target);
  cut.outputs[0] = kAdded;
  cut.inputs[0] = target + (target >= classes ? 1 : 0);
  cut.inputs[1] = target;
  return cut;
}

// The number of all parts, as passes/repeat_micro_batches.h makes it.
absl::StatusOr<NodeCut> CutCountTargets(const CutCall& c) {
  for (size_t i = 0; i < c.types.size(); ++i) {
    const bool weights = c.types[i]->dtype == DType::kF32;
    if (c.cut(i) == weights) return c.Refuse("counts targets of other batches");
  }
  NodeCut cut = c.Result(kWhole);
  cut.inputs.assign(c.axes.begin(), c.axes.end());
  return cut;
}

// Operators under which sums and means of the parts stay such.
absl::StatusOr<NodeCut> CutLinear(const CutCall& c) {
  const std::string& op = c.node.op;
  const int64_t first = c.axes[0];
  const int64_t second = c.axes.size() > 1 ? c.axes[1] : kWhole;
  const bool sum = op == "Add" || op == "Sub";
  int64_t kind = kWhole;
  if (op == "Neg" || op == "Reshape" || (sum && first == second) ||
      ((op == "Mul" || op == "Div") && second == kWhole) ||
      (sum && first == kMean && second == kWhole)) {
    kind = first;
  } else if (first == kWhole && (op == "Mul" || (sum && second == kMean))) {
    kind = second;
  }
  if (kind != kAdded && kind != kMean) {
    return c.Refuse("reads a number that is taken over all examples");
  }
  NodeCut cut = c.Result(kind);
  cut.inputs.assign(c.axes.begin(), c.axes.end());
  return cut;
}

absl::StatusOr<NodeCut> CutMseLoss(const CutCall& c) {
  const int64_t axis = c.axes[c.first_cut()];
  NodeCut cut = c.Result(kMean);
  cut.inputs[0] = cut.inputs[1] = axis;
  return cut;
}

bool IsPointwise(absl::string_view op) {
  static constexpr absl::string_view kOps[] = {
      "Relu",        "Sigmoid",     "Tanh",
      "Exp",         "Log",         "Sqrt",
      "Neg",         "Abs",         "Erf",
      "Gelu",        "Not",         "Cast",
      "Add",         "Sub",         "Mul",
      "Div",         "Max",         "Min",
      "Pow",         "Equal",       "Less",
      "Greater",     "And",         "Or",
      "Where",       "LessOrEqual", "GreaterOrEqual",
      "Fmod",        "Reciprocal",  "ReluGrad",
      "SigmoidGrad", "TanhGrad",    "GeluGrad",
      "ErfGrad"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps) ||
         FindCurve(absl::StripSuffix(op, "Grad")) != nullptr;
}

Rule RuleOf(const std::string& op) {
  static const auto& rules =
      *new std::map<std::string, Rule>{{"Dropout", CutDropout},
                                       {"Reshape", CutReshape},
                                       {"Transpose", CutTranspose},
                                       {"Expand", CutExpand},
                                       {"Concat", CutConcat},
                                       {"Split", CutSplit},
                                       {"Slice", CutSlice},
                                       {"SliceGrad", CutSlice},
                                       {"ReduceSum", CutReduce},
                                       {"ReduceMean", CutReduce},
                                       {"ReduceMax", CutAlongAxis},
                                       {"ReduceMin", CutAlongAxis},
                                       {"CumSum", CutAlongAxis},
                                       {"TopK", CutAlongAxis},
                                       {"Softmax", CutAlongAxis},
                                       {"LogSoftmax", CutAlongAxis},
                                       {"MatMul", CutProduct},
                                       {"Gemm", CutProduct},
                                       {"Conv", CutExamples},
                                       {"ConvInputGrad", CutExamples},
                                       {"MaxPool", CutPool},
                                       {"AveragePool", CutPool},
                                       {"BatchNormalization", CutBatchNorm},
                                       {"BatchNormTraining", CutBatchNorm},
                                       {"RunningStatsUpdate", CutRunningStats},
                                       {"LayerNormalization", CutLayerNorm},
                                       {"Attention", CutAttention},
                                       {"Gather", CutGather},
                                       {"GatherGrad", CutScatter},
                                       {"Scatter", CutScatter},
                                       {"SoftmaxCrossEntropy", CutCrossEntropy},
                                       {"CountTargets", CutCountTargets},
                                       {"MseLoss", CutMseLoss}};
  const auto it = rules.find(op);
  if (it != rules.end()) return it->second;
  return IsPointwise(op) ? CutPointwise : nullptr;
}

absl::Status CheckParts(const CutCall& c, const TensorType& type,
                        int64_t axis) {
  if (axis < 0) return absl::OkStatus();
  if (AxisOf(axis) < type.rank() &&
      type.dims[static_cast<size_t>(AxisOf(axis))] %
              (c.parts * OuterOf(axis)) ==
          0) {
    return absl::OkStatus();
  }
  return c.Refuse("has ", type.ToString(), ", which does not divide into ",
                  c.parts, " equal parts");
}

// The call with plain axes, for rules that treat all elements of an axis alike;
// then all operands are cut in as many blocks.
absl::StatusOr<NodeCut> CutInterleaved(const CutCall& call, Rule rule,
                                       int64_t outer) {
  std::vector<int64_t> axes(call.axes.begin(), call.axes.end());
  for (int64_t& axis : axes) {
    if (axis < 0) continue;
    if (OuterOf(axis) != outer) {
      return call.Refuse("has the examples in different orders");
    }
    axis = AxisOf(axis);
  }
  LOADLINE_ASSIGN_OR_RETURN(
      NodeCut cut, rule({call.node, call.types, call.outputs, axes, call.parts,
                         call.statistics}));
  if (cut.position_shift != 0) return call.Refuse("may read other examples");
  if (cut.attributes.Has("offset")) {
    return call.Refuse("draws its random numbers across the examples");
  }
  for (std::vector<int64_t>* cuts : {&cut.inputs, &cut.outputs}) {
    for (int64_t& axis : *cuts) {
      if (axis >= 0) axis = InterleavedAxis(axis, outer);
    }
  }
  return cut;
}

bool MovesBlocks(absl::string_view op) {
  return op == "Reshape" || op == "Concat" || op == "Split" || op == "Slice" ||
         op == "SliceGrad";
}

// The number of blocks of the operands that are cut.
int64_t MostOuter(absl::Span<const int64_t> axes) {
  int64_t outer = 1;
  for (int64_t axis : axes) {
    if (axis >= 0) outer = std::max(outer, OuterOf(axis));
  }
  return outer;
}

// More than any tensor has.
constexpr int64_t kMostAxes = 256;

}  // namespace

int64_t InterleavedAxis(int64_t axis, int64_t outer) {
  return axis + kMostAxes * (outer - 1);
}
int64_t AxisOf(int64_t cut) { return cut % kMostAxes; }
int64_t OuterOf(int64_t cut) { return cut / kMostAxes + 1; }

int64_t ElementsBefore(const TensorType& type, int64_t axis) {
  int64_t elements = OuterOf(axis);
  for (int64_t a = 0; a < AxisOf(axis); ++a) {
    elements *= type.dims[static_cast<size_t>(a)];
  }
  return elements;
}

std::optional<int64_t> SameRange(const TensorType& from, int64_t axis,
                                 const TensorType& to, int64_t parts) {
  const int64_t before = ElementsBefore(from, axis);
  // Later axes have fewer blocks.
  for (int64_t a = to.rank() - 1; a >= 0; --a) {
    const int64_t own = ElementsBefore(to, a);
    if (own == 0 || own > before || before % own != 0) continue;
    const int64_t outer = before / own;
    if (to.dims[static_cast<size_t>(a)] % (outer * parts) == 0) {
      return InterleavedAxis(a, outer);
    }
  }
  return std::nullopt;
}

TensorType PartOf(TensorType type, int64_t axis, int64_t parts) {
  type.dims = PartOfShape(std::move(type.dims), AxisOf(axis), parts);
  return type;
}

absl::StatusOr<NodeCut> CutNode(const Node& node,
                                absl::Span<const TensorType* const> types,
                                absl::Span<const TensorType> outputs,
                                absl::Span<const int64_t> axes, int64_t parts,
                                BatchStatistics statistics) {
  const CutCall call = {node, types, outputs, axes, parts, statistics};
  for (const int64_t axis : axes) {
    if (axis == kAdded || axis == kMean) return CutLinear(call);
    if (axis == kOwn && node.op != "RunningStatsUpdate") {
      return call.Refuse("computes with the statistics of the batch");
    }
  }
  const Rule rule = RuleOf(node.op);
  if (rule == nullptr) {
    return call.Refuse("is not known to treat every example by itself");
  }
  const int64_t outer = MostOuter(axes);
  // Some move from one number of blocks to another.
  LOADLINE_ASSIGN_OR_RETURN(NodeCut cut, outer > 1 && !MovesBlocks(node.op)
                                             ? CutInterleaved(call, rule, outer)
                                             : rule(call));
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] != kWhole && axes[i] != cut.inputs[i]) {
      return call.Refuse("combines different examples");
    }
    if (call.has(i)) {
      LOADLINE_RETURN_IF_ERROR(CheckParts(call, *types[i], cut.inputs[i]));
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    LOADLINE_RETURN_IF_ERROR(CheckParts(call, outputs[i], cut.outputs[i]));
  }
  return cut;
}

}  // namespace loadline::models
