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
#include "models/ops/cut_rule.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

constexpr char kMixes[] = "computes one number from several examples";

// The axis of an operand that broadcasts to `axis` of a result of `rank`.
int64_t BroadcastAxis(const TensorType& operand, int64_t rank, int64_t axis) {
  const int64_t own = axis - (rank - operand.rank());
  return own < 0 || operand.dims[static_cast<size_t>(own)] == 1 ? kWhole : own;
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

absl::StatusOr<NodeCut> CutAlongAxis(const CutCall& c) {
  return CutBesideAxis(c, c.node.attributes.Int("axis", -1), kMixes);
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
      "ErfGrad",     "BitwiseAnd",  "BitwiseOr",
      "BitwiseXor"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps) ||
         FindCurve(absl::StripSuffix(op, "Grad")) != nullptr;
}

CutRule RuleOf(const std::string& op) {
  static const auto& rules = *new std::map<std::string, CutRule>{
      {"Dropout", CutDropout},
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
      {"SoftmaxCrossEntropy", CutCrossEntropy},
      {"CountTargets", CutCountTargets},
      {"MseLoss", CutMseLoss}};
  const auto it = rules.find(op);
  if (it != rules.end()) return it->second;
  if (const CutRule moves = MoveRuleOf(op)) return moves;
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
absl::StatusOr<NodeCut> CutInterleaved(const CutCall& call, CutRule rule,
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

Ints PartOfShape(Ints shape, int64_t axis, int64_t parts) {
  shape[static_cast<size_t>(axis)] /= parts;
  return shape;
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
  const CutRule rule = RuleOf(node.op);
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
