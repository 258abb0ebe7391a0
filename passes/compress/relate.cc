// One function per family of operators. A rule sees one node and relates axes;
// it knows nothing of channels or groups. Tested in
// tests/passes/compress/prune_groups_test.cc.
#include "passes/compress/relate.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "models/ops/families.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::Ints;
using models::kNoValue;
using models::Node;
using models::TensorType;
using models::ValueId;

// One node, as its rule sees it.
class Relation {
 public:
  Relation(const Graph& graph, int32_t index,
           const std::vector<bool>& from_parameters, AxisAtoms& atoms,
           std::vector<ReshapeBlock>& reshapes)
      : node(graph.nodes[static_cast<size_t>(index)]),
        atoms(atoms),
        graph_(graph),
        index_(index),
        from_parameters_(from_parameters),
        reshapes_(reshapes) {}

  const Node& node;
  AxisAtoms& atoms;

  bool Has(size_t i) const {
    return i < node.inputs.size() && node.inputs[i] != kNoValue;
  }
  ValueId In(size_t i) const { return node.inputs[i]; }
  ValueId Out(size_t i = 0) const { return node.outputs[i]; }
  const TensorType& Type(ValueId id) const { return graph_.value(id).type; }
  int64_t Rank(ValueId id) const { return Type(id).rank(); }
  // "Softmax /attn/Softmax"
  std::string Name() const { return absl::StrCat(node.op, " ", node.name); }
  // Made of trained parameters only, so that a mask makes its channels zero.
  bool IsWeight(ValueId id) const { return from_parameters_[Index(id)]; }

  // Neither trained nor computed: masks leave it alone.
  bool IsFixed(ValueId id) const {
    return graph_.value(id).kind == models::ValueKind::kConstant ||
           graph_.value(id).kind == models::ValueKind::kState;
  }
  // A constant of which every number is at least 1.
  bool IsAtLeastOne(ValueId id) const {
    const models::Value& value = graph_.value(id);
    if (value.kind != models::ValueKind::kConstant ||
        value.type.dtype != models::DType::kF32) {
      return false;
    }
    const auto numbers = value.initial->as<float>();
    return std::all_of(numbers.begin(), numbers.end(),
                       [](float x) { return x >= 1; });
  }

  void Same(ValueId a, int64_t axis_a, ValueId b, int64_t axis_b) {
    atoms.UniteAxes({a, axis_a}, {b, axis_b});
  }
  // Axes [0, rank) of both, where `but` is left out.
  void SameAxes(ValueId a, ValueId b, int64_t but = -1) {
    for (int64_t axis = 0; axis < Rank(a); ++axis) {
      if (axis != but) Same(a, axis, b, axis);
    }
  }
  // As NumPy broadcasts: from the last axis, each of the two without its last
  // `but_last` axes.
  void SameBroadcast(ValueId a, ValueId b, int64_t but_last = 0) {
    for (int64_t k = but_last; k < std::min(Rank(a), Rank(b)); ++k) {
      Same(a, Rank(a) - 1 - k, b, Rank(b) - 1 - k);
    }
  }
  void Freeze(ValueId id, int64_t axis, absl::string_view what) {
    atoms.Freeze({id, axis}, absl::StrCat(what, " ", Name()));
  }
  void FreezeAll(absl::string_view what) {
    for (ValueId id : node.inputs) FreezeValue(id, what);
    for (ValueId id : node.outputs) FreezeValue(id, what);
  }
  void FreezeValue(ValueId id, absl::string_view what) {
    if (id == kNoValue) return;
    for (int64_t axis = 0; axis < Rank(id); ++axis) Freeze(id, axis, what);
  }
  void Approximate(ValueId id, int64_t axis, absl::string_view what) {
    atoms.Approximate({id, axis}, absl::StrCat(what, " ", Name()));
  }
  // The sum over `axis` of a product of a and b.
  void Contract(ValueId a, int64_t axis_a, ValueId b, int64_t axis_b) {
    Same(a, axis_a, b, axis_b);
    if (!IsWeight(a) && !IsWeight(b)) {
      Approximate(a, axis_a, "the sum without a trained weight in");
    }
  }
  void Makes(ValueId weight, int64_t axis) {
    if (IsWeight(weight)) atoms.MarkMaker({weight, axis}, index_);
  }
  void Defer() {
    for (ReshapeBlock& block : BlocksOfReshape(graph_, node)) {
      reshapes_.push_back(std::move(block));
    }
  }

 private:
  const Graph& graph_;
  int32_t index_;
  const std::vector<bool>& from_parameters_;
  std::vector<ReshapeBlock>& reshapes_;
};

void Pointwise(Relation& r) {
  for (ValueId out : r.node.outputs) {
    for (ValueId in : r.node.inputs) {
      if (in != kNoValue) r.SameBroadcast(in, out);
    }
  }
}

// A masked channel is zero here, where the result or its slope may not be a
// number: times a masked weight that is not zero but NaN. The rule cannot tell
// whether something keeps it above zero.
void UndefinedAtZero(Relation& r, ValueId id) {
  if (r.IsFixed(id)) return;
  for (int64_t axis = 0; axis < r.Rank(id); ++axis) {
    r.Approximate(id, axis, "zero in");
  }
}
void PointwiseWithPole(Relation& r) {
  Pointwise(r);
  for (ValueId in : r.node.inputs) {
    const bool numerator = r.node.op == "Div" && in == r.In(0) && in != r.In(1);
    if (!numerator) UndefinedAtZero(r, in);
  }
}
// Powers of one and more have neither pole nor infinite slope at zero.
void Pow(Relation& r) {
  Pointwise(r);
  if (!r.IsAtLeastOne(r.In(1))) {
    UndefinedAtZero(r, r.In(0));
    UndefinedAtZero(r, r.In(1));
  }
}

void Expand(Relation& r) {
  const ValueId x = r.In(0), y = r.Out();
  const int64_t added = r.Rank(y) - r.Rank(x);
  for (int64_t axis = 0; axis < r.Rank(y); ++axis) {
    if (axis < added ||
        r.Type(x).dims[static_cast<size_t>(axis - added)] == 1) {
      r.atoms.MarkRepeats({y, axis});
    }
  }
  r.SameBroadcast(x, y);
}

// Reduced axes leave the output, or stay with one index.
void Reduce(Relation& r) {
  Ints axes = r.node.attributes.IntList("axes");
  const int64_t rank = r.Rank(r.In(0));
  if (r.node.attributes.Has("axis")) {
    axes = {r.node.attributes.Int("axis", 0)};
  } else if (!r.node.attributes.Has("axes")) {
    for (int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  }
  const bool keep = r.Rank(r.Out()) == rank;
  int64_t out_axis = 0;
  for (int64_t axis = 0; axis < rank; ++axis) {
    const bool reduced =
        std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (reduced) r.Approximate(r.In(0), axis, "the result of");
    if (!reduced) r.Same(r.In(0), axis, r.Out(), out_axis);
    if (!reduced || keep) ++out_axis;
  }
}

// The operators that treat one axis as a whole: all others are independent.
void AlongFrozenAxis(Relation& r) {
  const int64_t axis = r.node.attributes.Int("axis", 0);
  for (ValueId out : r.node.outputs) {
    r.SameAxes(r.In(0), out, axis);
    r.Freeze(out, axis, "the axis of");
  }
  r.Freeze(r.In(0), axis, "the axis of");
}

void Transpose(Relation& r) {
  const Ints perm = r.node.attributes.IntList("perm");
  for (size_t i = 0; i < perm.size(); ++i) {
    r.Same(r.In(0), perm[i], r.Out(), static_cast<int64_t>(i));
  }
}

// A joined value and its parts: Concat and Split.
void Parts(Relation& r, ValueId whole, const std::vector<ValueId>& parts) {
  const int64_t axis = r.node.attributes.Int("axis", 0);
  int64_t start = 0;
  for (ValueId part : parts) {
    const int64_t size = r.Type(part).dims[static_cast<size_t>(axis)];
    r.SameAxes(part, whole, axis);
    r.atoms.UniteRanges({part, axis}, 0, {whole, axis}, start, size);
    start += size;
  }
}
void Concat(Relation& r) { Parts(r, r.Out(), r.node.inputs); }
void Split(Relation& r) { Parts(r, r.In(0), r.node.outputs); }

// A part and the value that it was cut from, or is padded to.
void Window(Relation& r, ValueId part, ValueId whole) {
  const Ints axes = r.node.attributes.IntList("axes");
  const Ints starts = r.node.attributes.IntList("starts");
  const Ints steps = r.node.attributes.IntList("steps");
  for (int64_t axis = 0; axis < r.Rank(part); ++axis) {
    const auto at = std::find(axes.begin(), axes.end(), axis);
    if (at == axes.end()) {
      r.Same(part, axis, whole, axis);
      continue;
    }
    const auto i = static_cast<size_t>(at - axes.begin());
    if (steps[i] != 1) {
      r.Freeze(part, axis, "the stride of");
      r.Freeze(whole, axis, "the stride of");
    } else {
      r.atoms.UniteRanges({part, axis}, 0, {whole, axis}, starts[i],
                          r.Type(part).dims[static_cast<size_t>(axis)]);
    }
  }
}
void Slice(Relation& r) { Window(r, r.Out(), r.In(0)); }
// Zeros beside the part have no maker, and stay unless what they are added to
// goes.
void SliceGrad(Relation& r) { Window(r, r.In(0), r.Out()); }

// `picked` has the axes of `data` before and after `axis`, and those of the
// indices in its place.
void Indexed(Relation& r, ValueId data, ValueId indices, ValueId picked) {
  const int64_t axis = r.node.attributes.Int("axis", 0);
  const int64_t width = r.Rank(indices);
  r.Freeze(data, axis, "positions that indices name in");
  for (int64_t k = 0; k < r.Rank(data); ++k) {
    if (k != axis) r.Same(data, k, picked, k < axis ? k : k - 1 + width);
  }
  for (int64_t k = 0; k < width; ++k) r.Same(indices, k, picked, axis + k);
}
void Gather(Relation& r) {
  Indexed(r, r.In(0), r.In(1), r.Out());
  // An embedding makes the channels of its rows.
  for (int64_t axis = 0; axis < r.Rank(r.In(0)); ++axis) {
    if (axis != r.node.attributes.Int("axis", 0)) r.Makes(r.In(0), axis);
  }
}
void GatherGrad(Relation& r) { Indexed(r, r.Out(), r.In(1), r.In(0)); }

void Scatter(Relation& r) {
  for (ValueId id : {r.In(0), r.In(2), r.Out()}) {
    r.Freeze(id, 0, "positions that indices name in");
  }
  r.SameAxes(r.In(0), r.Out(), 0);
  r.SameAxes(r.In(2), r.Out(), 0);
  r.Same(r.In(1), 0, r.In(2), 0);
}

// NumPy's rules: a vector has no rows (left) or no columns (right).
void MatMul(Relation& r) {
  const ValueId a = r.In(0), b = r.In(1), y = r.Out();
  const bool trans_a = r.node.attributes.Int("trans_a", 0) != 0;
  const bool trans_b = r.node.attributes.Int("trans_b", 0) != 0;
  const int64_t rank_a = r.Rank(a), rank_b = r.Rank(b), rank_y = r.Rank(y);
  const int64_t inner_a = rank_a == 1 || !trans_a ? rank_a - 1 : rank_a - 2;
  const int64_t inner_b = rank_b == 1 || trans_b ? rank_b - 1 : rank_b - 2;
  r.Contract(a, inner_a, b, inner_b);
  const bool columns = rank_b > 1, rows = rank_a > 1;
  if (rows) {
    const int64_t row = trans_a ? rank_a - 1 : rank_a - 2;
    r.Same(a, row, y, rank_y - 1 - (columns ? 1 : 0));
    r.Makes(a, row);
  }
  if (columns) {
    const int64_t column = trans_b ? rank_b - 2 : rank_b - 1;
    r.Same(b, column, y, rank_y - 1);
    r.Makes(b, column);
  }
  // Batch axes, the same in a, b and y.
  const int64_t last = (rows ? 1 : 0) + (columns ? 1 : 0);
  for (int64_t k = 0; k < rank_y - last; ++k) {
    const int64_t axis_y = rank_y - last - 1 - k;
    for (ValueId x : {a, b}) {
      const int64_t axis = r.Rank(x) - 3 - k;
      if (axis < 0) continue;
      r.Same(x, axis, y, axis_y);
      r.Makes(x, axis);
    }
    if (!r.IsWeight(a) && !r.IsWeight(b)) r.atoms.MarkHead({y, axis_y});
  }
}

void Gemm(Relation& r) {
  const ValueId a = r.In(0), b = r.In(1), y = r.Out();
  const int64_t inner_a = r.node.attributes.Int("transA", 0) != 0 ? 0 : 1;
  const int64_t inner_b = r.node.attributes.Int("transB", 0) != 0 ? 1 : 0;
  r.Contract(a, inner_a, b, inner_b);
  r.Same(a, 1 - inner_a, y, 0);
  r.Makes(a, 1 - inner_a);
  r.Same(b, 1 - inner_b, y, 1);
  r.Makes(b, 1 - inner_b);
  if (r.Has(2)) r.SameBroadcast(r.In(2), y);
}

// Ties channel c of `x` to its group and position: for each convolution group,
// `per_group` channels.
void TieByPart(Relation& r, AxisRef x, int64_t per_group, bool whole_groups,
               AxisRef representative) {
  for (int64_t c = 0; c < r.atoms.size(x); ++c) {
    const int64_t unit = whole_groups ? c / per_group : c % per_group;
    r.atoms.Unite(x, c, representative, unit);
  }
}

// `x` has the channels that w's axis 1 reads, `y` those that axis 0 makes. For
// the transposed convolution they change places. `maker`: w's axis that makes.
void Convolve(Relation& r, ValueId x, ValueId w, ValueId y, int64_t maker) {
  const int64_t groups = r.node.attributes.Int("group", 1);
  r.Same(x, 0, y, 0);
  for (ValueId id : {x, y, w}) {
    for (int64_t axis = 2; axis < r.Rank(id); ++axis) {
      r.Freeze(id, axis, "the window of");
    }
  }
  if (groups == 1) {
    if (maker == 0) {
      r.Contract(x, 1, w, 1);
      r.Same(w, 0, y, 1);
    } else {
      r.Contract(y, 1, w, 0);
      r.Same(w, 1, x, 1);
    }
    r.Makes(w, maker);
    return;
  }
  const int64_t in = r.Type(x).dims[1] / groups;   // per group
  const int64_t out = r.Type(y).dims[1] / groups;  // per group
  const bool whole_groups = groups >= std::min(in, out);
  if (whole_groups) {
    // One index of each group stands for it: the group's first channel of y.
    for (int64_t c = 0; c < groups * in; ++c) {
      r.atoms.Unite({x, 1}, c, {y, 1}, c / in * out);
    }
    for (int64_t c = 0; c < groups * out; ++c) {
      r.atoms.Unite({y, 1}, c, {y, 1}, c / out * out);
      r.atoms.Unite({w, 0}, c, {y, 1}, c);
    }
    r.Freeze(w, 1, "channels within a group of");
  } else {
    TieByPart(r, {x, 1}, in, false, {w, 1});
    TieByPart(r, {y, 1}, out, false, {y, 1});
    r.Same(w, 0, y, 1);
    if (!r.IsWeight(w))
      r.Approximate(w, 1, "the sum without a trained weight in");
  }
  if (maker == 0 || !whole_groups) {
    r.Makes(w, maker);
  } else {
    // Whole groups of the transposed convolution: channels of x are tied to
    // axis 0 of w.
    r.Makes(w, 0);
  }
}

void Conv(Relation& r) {
  Convolve(r, r.In(0), r.In(1), r.Out(), 0);
  if (r.Has(2)) r.Same(r.In(2), 0, r.Out(), 1);
}
void ConvInputGrad(Relation& r) { Convolve(r, r.Out(), r.In(1), r.In(0), 1); }

void Pool(Relation& r) {
  for (ValueId out : r.node.outputs) {
    for (int64_t axis = 0; axis < r.Rank(r.In(0)); ++axis) {
      if (axis < 2) {
        r.Same(r.In(0), axis, out, axis);
      } else {
        r.Freeze(r.In(0), axis, "the window of");
        r.Freeze(out, axis, "the window of");
      }
    }
  }
}

void BatchNorm(Relation& r) {
  const ValueId x = r.In(0);
  for (size_t i = 1; i < r.node.inputs.size(); ++i) r.Same(r.In(i), 0, x, 1);
  r.SameAxes(x, r.Out());
  for (size_t i = 1; i < r.node.outputs.size(); ++i) r.Same(r.Out(i), 0, x, 1);
  if (r.node.op != "BatchNormTraining") return;
  for (int64_t axis = 0; axis < r.Rank(x); ++axis) {
    if (axis != 1) r.Approximate(x, axis, "statistics of");
  }
}

void LayerNorm(Relation& r) {
  const ValueId x = r.In(0);
  const int64_t first = r.node.attributes.Int("axis", 0);
  for (size_t i = 1; i < r.node.inputs.size(); ++i) {
    if (r.Has(i)) r.SameBroadcast(r.In(i), x);
  }
  r.SameAxes(x, r.Out());
  for (int64_t axis = first; axis < r.Rank(x); ++axis) {
    r.Approximate(x, axis, "statistics of");
  }
  for (size_t i = 1; i < r.node.outputs.size(); ++i) {
    for (int64_t axis = 0; axis < first; ++axis)
      r.Same(x, axis, r.Out(i), axis);
  }
}

using Rule = void (*)(Relation&);

std::map<std::string, Rule, std::less<>> MakeRules() {
  std::map<std::string, Rule, std::less<>> rules = {
      {"ReduceSum", Reduce},
      {"ReduceMean", Reduce},
      {"ReduceMax", Reduce},
      {"ReduceMin", Reduce},
      {"CumSum", AlongFrozenAxis},
      {"TopK", AlongFrozenAxis},
      {"Softmax", AlongFrozenAxis},
      {"LogSoftmax", AlongFrozenAxis},
      {"Expand", Expand},
      {"Reshape", [](Relation& r) { r.Defer(); }},
      {"Transpose", Transpose},
      {"Concat", Concat},
      {"Split", Split},
      {"Slice", Slice},
      {"SliceGrad", SliceGrad},
      {"Gather", Gather},
      {"GatherGrad", GatherGrad},
      {"Scatter", Scatter},
      {"MatMul", MatMul},
      {"Gemm", Gemm},
      {"Conv", Conv},
      {"ConvInputGrad", ConvInputGrad},
      {"MaxPool", Pool},
      {"AveragePool", Pool},
      {"BatchNormalization", BatchNorm},
      {"BatchNormTraining", BatchNorm},
      {"LayerNormalization", LayerNorm},
  };
  for (const char* op : {"Relu",
                         "Sigmoid",
                         "Tanh",
                         "Exp",
                         "Log",
                         "Sqrt",
                         "Neg",
                         "Abs",
                         "Erf",
                         "Reciprocal",
                         "Gelu",
                         "Not",
                         "Cast",
                         "Add",
                         "Sub",
                         "Mul",
                         "Div",
                         "Max",
                         "Min",
                         "Pow",
                         "Equal",
                         "Less",
                         "Where",
                         "LessOrEqual",
                         "Greater",
                         "And",
                         "Or",
                         "Expand",
                         "GreaterOrEqual",
                         "Dropout",
                         "RunningStatsUpdate"}) {
    rules[op] = Pointwise;
  }
  for (const char* op : {"Div", "Log", "Sqrt", "Reciprocal"}) {
    rules[op] = PointwiseWithPole;
  }
  rules["Pow"] = Pow;
  for (const models::Operator& curve : models::CurveOperators()) {
    rules[std::string(curve.name)] = Pointwise;
  }
  rules["Acosh"] = PointwiseWithPole;
  return rules;
}

// For each value, whether it is computed of trained parameters alone, or of
// these and constants.
std::vector<bool> FromParameters(const Graph& graph) {
  const auto count = graph.values.size();
  std::vector<bool> fixed(count, false), trained(count, false);
  for (size_t v = 0; v < count; ++v) {
    trained[v] = graph.values[v].kind == models::ValueKind::kParameter;
    fixed[v] =
        trained[v] || graph.values[v].kind == models::ValueKind::kConstant;
  }
  for (const Node& node : graph.nodes) {
    bool all = true, any = false;
    for (ValueId id : node.inputs) {
      if (id == kNoValue) continue;
      all = all && fixed[Index(id)];
      any = any || trained[Index(id)];
    }
    for (ValueId id : node.outputs) {
      fixed[Index(id)] = all;
      trained[Index(id)] = all && any;
    }
  }
  return trained;
}

void FreezeEnds(const Graph& graph, AxisAtoms& atoms) {
  const auto freeze = [&](ValueId id, absl::string_view what) {
    for (int64_t axis = 0; axis < atoms.rank(id); ++axis) {
      atoms.Freeze({id, axis}, absl::StrCat(what, graph.value(id).name));
    }
  };
  for (ValueId id : graph.outputs) freeze(id, "output of the model ");
  for (ValueId id : graph.inputs) freeze(id, "input of the model ");
}

}  // namespace

std::vector<ReshapeBlock> RelateAxes(const Graph& graph, AxisAtoms& atoms) {
  static const auto& rules =
      *new std::map<std::string, Rule, std::less<>>(MakeRules());
  FreezeEnds(graph, atoms);
  const std::vector<bool> from_parameters = FromParameters(graph);
  std::vector<ReshapeBlock> reshapes;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    Relation relation(graph, static_cast<int32_t>(n), from_parameters, atoms,
                      reshapes);
    const auto rule = rules.find(graph.nodes[n].op);
    if (rule != rules.end()) {
      rule->second(relation);
    } else {
      relation.FreezeAll("pruning has no rule for");
    }
  }
  for (const auto& [old_version, new_version] : graph.updates) {
    for (int64_t axis = 0; axis < atoms.rank(old_version); ++axis) {
      atoms.UniteAxes({old_version, axis}, {new_version, axis});
    }
  }
  return reshapes;
}

}  // namespace loadline::passes
