// Tested in tests/executor/reference/check_gradients_test.cc.
#include "executor/reference/check_gradients.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "executor/reference/evaluate.h"
#include "models/differentiate.h"
#include "models/storage.h"
#include "planner/base/status_macros.h"

namespace loadline::reference {
namespace {

using models::DType;
using models::Graph;
using models::kNoValue;
using models::Node;
using models::TensorType;
using models::Value;
using models::ValueId;

constexpr executor::StepScalars kScalars{
    .learning_rate = 0, .step = 3, .seed = 7};
// Half the distance of the two sides of a difference: long, against rounding of
// large sums, or short, as a share of the distance between the numbers of an
// input, so that no kink of a maximum of them lies between the sides. Draws
// take turns.
constexpr double kStep = 2e-5;
constexpr double kShareOfDistance = 0.1;
constexpr int kDirections = 3;
// A kink can be hit by chance; a wrong rule is wrong at every draw.
constexpr int kDraws = 6;
constexpr int64_t kShortestAxis = 2;

// Where inputs are drawn: magnitudes, and whether of both signs. The first at
// which all outputs are finite is used: logarithms and roots want positive
// numbers, and inverse functions small or large ones.
struct Domain {
  double low, high;
  bool both_signs;
};
constexpr Domain kDomains[] = {
    {0.5, 1.5, true}, {0.5, 1.5, false}, {0.1, 0.9, true}, {1.1, 2.1, false}};

// A graph of one node. Constants of the step stay constants unless their shape
// changed.
struct NodeCase {
  Graph graph;
  models::NodeId node{0};
  bool smaller = false;
};

// The new length of every axis that had the old one.
using Lengths = std::map<int64_t, int64_t>;

int64_t NewLength(const Lengths& lengths, int64_t length) {
  const auto found = lengths.find(length);
  return found == lengths.end() ? length : found->second;
}

models::Attributes WithLengths(models::Attributes attributes,
                               const Lengths& lengths) {
  for (const char* name : {"shape", "sizes"}) {
    if (!attributes.Has(name)) continue;
    models::Ints dims = attributes.IntList(name);
    for (int64_t& dim : dims) dim = NewLength(lengths, dim);
    attributes.Set(name, dims);
  }
  return attributes;
}

absl::StatusOr<NodeCase> MakeCase(const Graph& step, const Node& node,
                                  const Lengths& lengths) {
  NodeCase made;
  made.smaller = !lengths.empty();
  std::vector<ValueId> inputs;
  for (ValueId id : node.inputs) {
    inputs.push_back(kNoValue);
    if (id == kNoValue) continue;
    const Value& value = step.value(id);
    TensorType type = value.type;
    for (int64_t& dim : type.dims) dim = NewLength(lengths, dim);
    const bool constant = value.kind == models::ValueKind::kConstant;
    inputs.back() = constant && type == value.type
                        ? made.graph.AddConstant(value.name, *value.initial)
                        : made.graph.AddInput(value.name, type);
  }
  LOADLINE_RETURN_IF_ERROR(made.graph
                               .AddNode(node.op, node.name, inputs,
                                        WithLengths(node.attributes, lengths))
                               .status());
  return made;
}

double Work(const NodeCase& c) {
  const models::OperatorCost cost =
      models::CostOf(c.graph, c.graph.node(c.node));
  return cost.flops + static_cast<double>(cost.bytes) / 4;
}

// Halves the longest axes until the work is small enough.
absl::StatusOr<NodeCase> MakeSmallCase(const Graph& step, const Node& node,
                                       double most_flops) {
  std::set<int64_t> all;
  for (ValueId id : node.inputs) {
    if (id == kNoValue) continue;
    const models::Ints& dims = step.value(id).type.dims;
    all.insert(dims.begin(), dims.end());
  }
  for (const char* name : {"shape", "sizes"}) {
    const models::Ints dims = node.attributes.IntList(name);
    all.insert(dims.begin(), dims.end());
  }
  Lengths lengths;
  LOADLINE_ASSIGN_OR_RETURN(NodeCase made, MakeCase(step, node, lengths));
  while (Work(made) > most_flops) {
    std::vector<int64_t> longest(all.begin(), all.end());
    std::stable_sort(longest.begin(), longest.end(), [&](int64_t a, int64_t b) {
      return NewLength(lengths, a) > NewLength(lengths, b);
    });
    bool halved = false;
    for (const int64_t length : longest) {
      const int64_t now = NewLength(lengths, length);
      if (now <= kShortestAxis) break;
      Lengths next = lengths;
      next[length] = (now + 1) / 2;
      absl::StatusOr<NodeCase> smaller = MakeCase(step, node, next);
      if (!smaller.ok()) continue;
      made = *std::move(smaller);
      lengths = std::move(next);
      halved = true;
      break;
    }
    if (!halved) {
      return absl::UnimplementedError(
          "too large, and not meaningful with shorter axes");
    }
  }
  return made;
}

class RuleChecker {
 public:
  RuleChecker(const NodeCase& c, std::vector<bool> wanted,
              const GradientCheckOptions& options, int draw)
      : case_(c),
        node_(c.graph.node(c.node)),
        wanted_(std::move(wanted)),
        options_(options),
        short_steps_(draw % 2 == 1),
        random_(options.seed + static_cast<uint64_t>(draw)) {}

  // The largest relative error over all inputs and directions.
  absl::StatusOr<double> Error() {
    LOADLINE_RETURN_IF_ERROR(Draw());
    LOADLINE_RETURN_IF_ERROR(CheckDistinct());
    LOADLINE_RETURN_IF_ERROR(RunRule());
    double worst = 0;
    for (size_t i = 0; i < wanted_.size(); ++i) {
      if (!wanted_[i]) continue;
      for (int k = 0; k < kDirections; ++k) {
        LOADLINE_ASSIGN_OR_RETURN(const double error, ErrorAlongOne(i));
        worst = std::max(worst, std::isnan(error) ? HUGE_VAL : error);
      }
    }
    return worst;
  }

 private:
  double Uniform(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }

  // Distinct numbers in random order: of a grid, each a little off.
  std::vector<double> Floats(size_t count, const Domain& domain) {
    std::vector<double> numbers(count);
    const double width =
        (domain.high - domain.low) / static_cast<double>(count);
    for (size_t i = 0; i < count; ++i) {
      numbers[i] =
          domain.low + (static_cast<double>(i) + Uniform(0.3, 0.7)) * width;
      if (domain.both_signs && Uniform(0, 1) < 0.5) numbers[i] = -numbers[i];
    }
    std::shuffle(numbers.begin(), numbers.end(), random_);
    return numbers;
  }

  // The length of the axis that integers index; of the shortest axis of all
  // float inputs where the operator does not say.
  int64_t IndexLimit() const {
    if (node_.op == "Scatter" || node_.op == "ScatterReduce" ||
        node_.op == "Gather") {
      const auto axis = static_cast<size_t>(node_.attributes.Int("axis", 0));
      return case_.graph.value(node_.inputs[0]).type.dims[axis];
    }
    int64_t limit = std::numeric_limits<int64_t>::max();
    for (ValueId id : node_.inputs) {
      if (id == kNoValue) continue;
      const TensorType& type = case_.graph.value(id).type;
      if (type.dtype != DType::kF32) continue;
      for (int64_t dim : type.dims) limit = std::min(limit, dim);
    }
    return limit == std::numeric_limits<int64_t>::max() ? 1 : limit;
  }

  // In random order, and none twice before all are there.
  std::vector<double> Integers(size_t count, int64_t end) {
    std::vector<double> numbers(count);
    for (size_t i = 0; i < count; ++i) {
      numbers[i] = static_cast<double>(static_cast<int64_t>(i) %
                                       std::max<int64_t>(end, 1));
    }
    std::shuffle(numbers.begin(), numbers.end(), random_);
    return numbers;
  }

  std::vector<Array> Inputs(const Domain& domain) {
    std::vector<Array> inputs;
    for (ValueId id : case_.graph.inputs) {
      Array a{case_.graph.value(id).type, {}};
      const auto count = static_cast<size_t>(a.type.elements());
      if (a.type.dtype == DType::kF32) {
        a.values = Floats(count, domain);
      } else {
        a.values =
            Integers(count, a.type.dtype == DType::kBool ? 2 : IndexLimit());
      }
      inputs.push_back(std::move(a));
    }
    return inputs;
  }

  // Outputs that only serve the backward pass get no gradient: just output 0
  // does, and all outputs of Split.
  bool IsDifferentiated(size_t output) const {
    return output == 0 || node_.op == "Split";
  }

  absl::StatusOr<std::vector<Array>> Outputs(
      const std::vector<Array>& inputs) const {
    LOADLINE_ASSIGN_OR_RETURN(std::vector<Array> values,
                              Evaluate(case_.graph, inputs, kScalars));
    std::vector<Array> outputs;
    for (ValueId id : node_.outputs) {
      outputs.push_back(std::move(values[models::Index(id)]));
    }
    return outputs;
  }

  // Chooses the domain, and weights that are zero where an output is infinite
  // in every domain, as under a mask.
  absl::Status Draw() {
    size_t most_finite = 0;
    for (const Domain& domain : kDomains) {
      std::vector<Array> inputs = Inputs(domain);
      LOADLINE_ASSIGN_OR_RETURN(const std::vector<Array> outputs,
                                Outputs(inputs));
      std::vector<Array> weights;
      size_t finite = 0, all = 0;
      double squares = 0;
      for (size_t o = 0; o < outputs.size(); ++o) {
        weights.push_back({outputs[o].type, {}});
        if (!IsDifferentiated(o)) continue;
        for (double y : outputs[o].values) {
          const double r = std::isfinite(y) ? Uniform(-1, 1) : 0;
          weights[o].values.push_back(r);
          if (r != 0) squares += r * y * r * y;
          finite += std::isfinite(y);
          ++all;
        }
      }
      if (all > 0 && finite <= most_finite) continue;
      most_finite = finite;
      inputs_ = std::move(inputs);
      weights_ = std::move(weights);
      size_ = std::sqrt(squares);
      range_ = domain.high - domain.low;
      if (finite == all) return absl::OkStatus();
    }
    if (most_finite > 0) return absl::OkStatus();
    return absl::UnimplementedError("no finite result at the numbers tried");
  }

  // A row that a later update overwrites has no slope but gets a gradient, as
  // in PyTorch.
  absl::Status CheckDistinct() const {
    if (node_.op != "Scatter") return absl::OkStatus();
    LOADLINE_ASSIGN_OR_RETURN(const std::vector<Array> values,
                              Evaluate(case_.graph, inputs_, kScalars));
    const std::vector<double>& indices =
        values[models::Index(node_.inputs[1])].values;
    if (std::set<double>(indices.begin(), indices.end()).size() ==
        indices.size()) {
      return absl::OkStatus();
    }
    return absl::UnimplementedError("it writes a row more than once");
  }

  // Computes the gradients of the inputs by the rule.
  absl::Status RunRule() {
    Graph graph = case_.graph;
    std::vector<Array> given = inputs_;
    std::vector<ValueId> output_gradients;
    for (size_t o = 0; o < weights_.size(); ++o) {
      output_gradients.push_back(kNoValue);
      if (!IsDifferentiated(o)) continue;
      output_gradients.back() = graph.AddInput("dy", weights_[o].type);
      given.push_back(weights_[o]);
    }
    models::GradientContext context(&graph, case_.node, output_gradients,
                                    wanted_);
    LOADLINE_RETURN_IF_ERROR(
        options_.rule ? options_.rule(context)
                      : models::FindOperator(node_.op)->gradient(context));
    LOADLINE_ASSIGN_OR_RETURN(const std::vector<Array> values,
                              Evaluate(graph, given, kScalars));
    for (ValueId id : context.input_gradients()) {
      gradients_.push_back(id == kNoValue ? Array{}
                                          : values[models::Index(id)]);
    }
    return absl::OkStatus();
  }

  // L's growth from the inputs moved by -h along the direction to +h.
  absl::StatusOr<double> Growth(size_t given, const std::vector<double>& along,
                                double h) const {
    std::vector<Array> below = inputs_, above = inputs_;
    for (size_t e = 0; e < along.size(); ++e) {
      below[given].values[e] -= h * along[e];
      above[given].values[e] += h * along[e];
    }
    LOADLINE_ASSIGN_OR_RETURN(const std::vector<Array> low, Outputs(below));
    LOADLINE_ASSIGN_OR_RETURN(const std::vector<Array> high, Outputs(above));
    double growth = 0;
    for (size_t o = 0; o < weights_.size(); ++o) {
      for (size_t e = 0; e < weights_[o].values.size(); ++e) {
        const double r = weights_[o].values[e];
        if (r != 0) growth += r * (high[o].values[e] - low[o].values[e]);
      }
    }
    return growth;
  }

  // Along one random direction of input i; Richardson's extrapolation of two
  // differences.
  absl::StatusOr<double> ErrorAlongOne(size_t i) {
    const auto& listed = case_.graph.inputs;
    const auto given = static_cast<size_t>(
        std::find(listed.begin(), listed.end(), node_.inputs[i]) -
        listed.begin());
    std::vector<double> along(inputs_[given].values.size());
    for (double& d : along) d = Uniform(-1, 1);
    const double distance =
        range_ / std::max(static_cast<double>(along.size()), 1.0);
    const double step =
        short_steps_ ? std::min(kStep, kShareOfDistance * distance) : kStep;
    LOADLINE_ASSIGN_OR_RETURN(const double wide, Growth(given, along, step));
    LOADLINE_ASSIGN_OR_RETURN(const double narrow,
                              Growth(given, along, step / 2));
    const double slope = (4 * narrow / step - wide / (2 * step)) / 3;
    double product = 0, squares = 0;
    const std::vector<double>& g = gradients_[i].values;
    for (size_t e = 0; e < g.size(); ++e) {
      product += g[e] * along[e];
      squares += g[e] * along[e] * g[e] * along[e];
    }
    // The last: where a gradient is zero, differences are only rounding.
    const double scale =
        std::max({std::abs(slope), std::sqrt(squares), 1e-3 * size_});
    return scale == 0 ? 0 : std::abs(slope - product) / scale;
  }

  const NodeCase& case_;
  const Node& node_;
  const std::vector<bool> wanted_;
  const GradientCheckOptions& options_;
  const bool short_steps_;
  std::mt19937_64 random_;
  std::vector<Array> inputs_;     // by the graph's inputs
  std::vector<Array> weights_;    // by output; empty: not differentiated
  double range_ = 0;              // of the magnitudes of inputs
  double size_ = 0;               // root of the sum of squares of r y
  std::vector<Array> gradients_;  // by the node's inputs; empty: none
};

absl::StatusOr<double> SmallestError(const NodeCase& c,
                                     const std::vector<bool>& wanted,
                                     const GradientCheckOptions& options) {
  double best = HUGE_VAL;
  for (int draw = 0; draw < kDraws && !(best <= kMostGradientError); ++draw) {
    LOADLINE_ASSIGN_OR_RETURN(const double error,
                              RuleChecker(c, wanted, options, draw).Error());
    best = std::min(best, error);
  }
  return best;
}

std::string TypesOf(const NodeCase& c) {
  std::vector<std::string> types;
  for (ValueId id : c.graph.node(c.node).inputs) {
    types.push_back(id == kNoValue ? "-" : c.graph.value(id).type.ToString());
  }
  return absl::StrJoin(types, ", ");
}

void CheckOne(const Graph& step, const Node& node,
              const std::vector<bool>& wanted,
              const GradientCheckOptions& options, GradientCheck* found) {
  const absl::StatusOr<NodeCase> made =
      MakeSmallCase(step, node, options.most_flops);
  const absl::StatusOr<double> error =
      made.ok() ? SmallestError(*made, wanted, options)
                : absl::StatusOr<double>(made.status());
  if (!error.ok()) {
    ++found->skipped;
    found->why = std::string(error.status().message());
    return;
  }
  ++found->checked;
  found->smaller += made->smaller;
  if (found->node.empty() || !(*error <= found->worst)) {
    found->worst = *error;
    found->node = node.name;
    found->types = TypesOf(*made);
  }
}

}  // namespace

std::vector<GradientCheck> CheckGradients(const Graph& step,
                                          const GradientCheckOptions& options) {
  std::vector<ValueId> parameters;
  for (size_t i = 0; i < step.values.size(); ++i) {
    if (step.values[i].kind == models::ValueKind::kParameter) {
      parameters.push_back(ValueId{static_cast<int32_t>(i)});
    }
  }
  const std::vector<bool> active = models::ActiveValues(step, parameters);
  std::map<std::string, GradientCheck> found;
  std::set<std::string> seen;
  for (const Node& node : step.nodes) {
    const models::Operator* op = models::FindOperator(node.op);
    if ((node.phase != models::Phase::kForward &&
         node.phase != models::Phase::kLoss) ||
        op->gradient == nullptr || op->stops_gradient || op->view) {
      continue;
    }
    std::vector<bool> wanted;
    std::string key = models::OperatorKey(step, node);
    for (ValueId id : node.inputs) {
      wanted.push_back(id != kNoValue && active[models::Index(id)]);
      key += wanted.back() ? '1' : '0';
    }
    if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) continue;
    GradientCheck& of_op = found[node.op];
    of_op.op = node.op;
    ++of_op.nodes;
    if (!seen.insert(key).second) continue;
    if (node.op == "FakeQuantize") {
      // Its gradient is that of the identity, on purpose.
      ++of_op.skipped;
      of_op.why = "a step function: its gradient is no slope";
      continue;
    }
    CheckOne(step, node, wanted, options, &of_op);
  }
  std::vector<GradientCheck> checks;
  for (auto& [name, check] : found) checks.push_back(std::move(check));
  return checks;
}

}  // namespace loadline::reference
