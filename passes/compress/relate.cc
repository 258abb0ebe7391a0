// Rules of operators that compute element by element or along an axis, and the
// table of all rules. Tested in tests/passes/compress/prune_groups_test.cc.
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
#include "passes/compress/relation.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::Ints;
using models::kNoValue;
using models::Node;
using models::ValueId;

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

RelateRules MakeRules() {
  RelateRules rules = {
      {"ReduceSum", Reduce},        {"ReduceMean", Reduce},
      {"ReduceMax", Reduce},        {"ReduceMin", Reduce},
      {"CumSum", AlongFrozenAxis},  {"TopK", AlongFrozenAxis},
      {"Softmax", AlongFrozenAxis}, {"LogSoftmax", AlongFrozenAxis},
      {"Expand", Expand},
  };
  for (const char* op : {"Relu",        "Sigmoid",
                         "Tanh",        "Exp",
                         "Log",         "Sqrt",
                         "Neg",         "Abs",
                         "Erf",         "Reciprocal",
                         "Gelu",        "Not",
                         "Cast",        "Add",
                         "Sub",         "Mul",
                         "Div",         "Max",
                         "Min",         "Pow",
                         "Fmod",        "Equal",
                         "Less",        "Where",
                         "LessOrEqual", "Greater",
                         "And",         "Or",
                         "Expand",      "GreaterOrEqual",
                         "Dropout",     "RunningStatsUpdate",
                         "BitwiseAnd",  "BitwiseOr",
                         "BitwiseXor"}) {
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
  rules.merge(MovementRelations());
  rules.merge(LayerRelations());
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
  static const auto& rules = *new RelateRules(MakeRules());
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
