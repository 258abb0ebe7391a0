// All updates are appended after the whole backward pass, as an unplanned
// program would run them; the planner moves them forward where that lowers the
// peak. Tested in tests/passes/add_optimizer_test.cc.
#include "passes/add_optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/name_pattern.h"
#include "models/ops/adafactor.h"
#include "models/ops/state_blocks.h"
#include "passes/clip_gradients.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::Attributes;
using models::Graph;
using models::Phase;
using models::ValueId;

absl::Status CheckRange(absl::string_view setting, double value, bool below_1) {
  if (std::isfinite(value) && value >= 0 && (!below_1 || value < 1)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(setting, " is ", value, "; it must be 0 or more",
                   below_1 ? " and less than 1" : ""));
}

absl::Status CheckOptions(const OptimizerOptions& options) {
  LOADLINE_RETURN_IF_ERROR(
      CheckRange("weight decay", options.weight_decay, false));
  LOADLINE_RETURN_IF_ERROR(CheckRange("momentum", options.momentum, false));
  LOADLINE_RETURN_IF_ERROR(CheckRange("beta1", options.beta1, true));
  LOADLINE_RETURN_IF_ERROR(CheckRange("beta2", options.beta2, true));
  LOADLINE_RETURN_IF_ERROR(CheckRange("epsilon", options.epsilon, false));
  LOADLINE_RETURN_IF_ERROR(
      CheckRange("the norm to clip to", options.clip_norm, false));
  LOADLINE_RETURN_IF_ERROR(
      CheckRange("decay of the average", options.average, true));
  for (const auto& [pattern, rate] : options.groups.rates) {
    LOADLINE_RETURN_IF_ERROR(CheckRange(
        absl::StrCat("the factor of the learning rate of '", pattern, "'"),
        rate, false));
  }
  if (options.state_bits != 32 && options.state_bits != 8) {
    return absl::InvalidArgumentError(absl::StrCat(
        "optimizer states have 32 or 8 bits, not ", options.state_bits));
  }
  if (options.state_bits == 8 && options.kind == OptimizerKind::kAdagrad) {
    return absl::InvalidArgumentError(
        "8-bit optimizer states: adagrad's sum only grows, and in 8 bits it "
        "would stop growing; use adamw, adam, lion or sgd");
  }
  if (options.state_bits == 8 && options.kind == OptimizerKind::kAdafactor) {
    return absl::InvalidArgumentError(
        "8-bit optimizer states: adafactor's are averages of rows and "
        "columns, which stay f32");
  }
  if (options.nesterov && options.momentum == 0) {
    return absl::InvalidArgumentError(
        "nesterov needs a momentum greater than 0");
  }
  return absl::OkStatus();
}

// A pattern that matches nothing is a typo, which would train with other
// settings than meant.
absl::Status CheckPattern(const Graph& graph, const Gradients& gradients,
                          const std::string& pattern) {
  for (const auto& [parameter, gradient] : gradients) {
    if (models::MatchesPattern(pattern, graph.value(parameter).name))
      return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no trained parameter matches '", pattern,
                   "'; names are those that "
                   "`loadline check` lists"));
}

absl::Status CheckGroups(const Graph& graph, const Gradients& gradients,
                         const ParameterGroups& groups) {
  for (const std::string& pattern : groups.no_decay) {
    LOADLINE_RETURN_IF_ERROR(CheckPattern(graph, gradients, pattern));
  }
  for (const auto& [pattern, rate] : groups.rates) {
    LOADLINE_RETURN_IF_ERROR(CheckPattern(graph, gradients, pattern));
  }
  return absl::OkStatus();
}

double DecayOf(const models::Value& parameter,
               const OptimizerOptions& options) {
  const ParameterGroups& groups = options.groups;
  if (groups.decay_matrices_only && parameter.type.rank() < 2) return 0;
  for (const std::string& pattern : groups.no_decay) {
    if (models::MatchesPattern(pattern, parameter.name)) return 0;
  }
  return options.weight_decay;
}

double RateOf(const std::string& parameter, const ParameterGroups& groups) {
  double found = 1;
  for (const auto& [pattern, rate] : groups.rates) {
    if (models::MatchesPattern(pattern, parameter)) found = rate;
  }
  return found;
}

Attributes AttributesOf(const models::Value& parameter,
                        const OptimizerOptions& options) {
  Attributes attributes = {{"weight_decay", DecayOf(parameter, options)}};
  const double rate = RateOf(parameter.name, options.groups);
  if (rate != 1) attributes.Set("rate", rate);
  if (options.kind == OptimizerKind::kSgd) {
    attributes.Set("momentum", options.momentum);
    attributes.Set("nesterov", int64_t{options.nesterov});
    return attributes;
  }
  if (options.kind == OptimizerKind::kAdagrad) {
    attributes.Set("epsilon", options.epsilon);
    return attributes;
  }
  if (options.kind == OptimizerKind::kAdafactor) {
    // Those of torch.optim.Adafactor, which nobody is known to change.
    attributes.Set("beta2_decay", -0.8);
    attributes.Set("epsilon1", double{std::numeric_limits<float>::epsilon()});
    attributes.Set("epsilon2", 1e-3);
    attributes.Set("threshold", 1.0);
    return attributes;
  }
  attributes.Set("beta1", options.beta1);
  attributes.Set("beta2", options.beta2);
  if (options.kind != OptimizerKind::kLion) {
    attributes.Set("epsilon", options.epsilon);
  }
  return attributes;
}

models::TensorType StateTypeOf(const models::TensorType& parameter,
                               const OptimizerOptions& options) {
  return options.state_bits == 8 &&
                 parameter.elements() >= kLeastElementsOf8Bits
             ? models::StateBlocksType(parameter.elements())
             : parameter;
}

struct State {
  std::string name;  // empty: an input that is absent
  models::TensorType type;
};

// The states, in the order of the operator's inputs.
std::vector<State> StatesOf(const OptimizerOptions& options,
                            const models::TensorType& parameter) {
  const models::TensorType type = StateTypeOf(parameter, options);
  switch (options.kind) {
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      return {{"exp_avg", type}, {"exp_avg_sq", type}};
    case OptimizerKind::kAdagrad:
      return {{"sum", type}};
    case OptimizerKind::kLion:
      return {{"exp_avg", type}};
    case OptimizerKind::kSgd:
      return {{options.momentum != 0 ? "momentum" : "", type}};
    case OptimizerKind::kAdafactor: {
      const std::vector<models::TensorType> types =
          models::AdafactorStates(parameter);
      if (types.size() == 1) return {{"variance", types[0]}, {"", types[0]}};
      return {{"row_var", types[0]}, {"col_var", types[1]}};
    }
  }
  return {};
}

struct Name {
  OptimizerKind kind;
  const char* flag;
  const char* op;
};
constexpr Name kNames[] = {
    {OptimizerKind::kSgd, "sgd", "Sgd"},
    {OptimizerKind::kAdamW, "adamw", "AdamW"},
    {OptimizerKind::kAdam, "adam", "Adam"},
    {OptimizerKind::kAdagrad, "adagrad", "Adagrad"},
    {OptimizerKind::kLion, "lion", "Lion"},
    {OptimizerKind::kAdafactor, "adafactor", "Adafactor"}};

const char* OperatorOf(OptimizerKind kind) {
  return std::find_if(std::begin(kNames), std::end(kNames),
                      [kind](const Name& name) { return name.kind == kind; })
      ->op;
}

// Zeros of any size; states that are equally large share theirs.
class Zeros {
 public:
  models::Tensor Of(const models::TensorType& type) {
    auto& shared = by_bytes_[type.bytes()];
    if (shared.data == nullptr) shared = models::ZeroTensor(type);
    return models::Tensor{type, shared.data};
  }

 private:
  std::map<int64_t, models::Tensor> by_bytes_;
};

absl::StatusOr<ValueId> AddState(Graph& graph, const std::string& name,
                                 models::Tensor zeros) {
  if (graph.Find(name).has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the model already has a value named '", name,
        "', the name of an optimizer state; rename it in the model"));
  }
  return graph.AddState(name, std::move(zeros));
}

// The moving average of what the update of a parameter makes.
absl::Status AddAverage(Graph& graph, const std::string& parameter,
                        ValueId updated, double decay, models::Tensor zeros) {
  const std::string name = AverageName(parameter);
  LOADLINE_ASSIGN_OR_RETURN(const ValueId average,
                            AddState(graph, name, std::move(zeros)));
  LOADLINE_ASSIGN_OR_RETURN(
      const std::vector<ValueId> outputs,
      graph.AddNode("AverageUpdate", absl::StrCat(name, ".update"),
                    {average, updated}, {{"decay", decay}}, Phase::kUpdate));
  graph.updates.emplace_back(average, outputs[0]);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OptimizerKind> OptimizerKindFromName(absl::string_view name) {
  for (const Name& known : kNames) {
    if (name == known.flag) return known.kind;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown optimizer '", name, "'; optimizers: ",
      absl::StrJoin(kNames, ", ", [](std::string* text, const Name& known) {
        absl::StrAppend(text, known.flag);
      })));
}

std::string AverageName(absl::string_view parameter) {
  return absl::StrCat(parameter, ".average");
}

absl::Status AddOptimizer(Graph& graph, const Gradients& gradients,
                          const OptimizerOptions& options) {
  LOADLINE_RETURN_IF_ERROR(CheckOptions(options));
  LOADLINE_RETURN_IF_ERROR(CheckGroups(graph, gradients, options.groups));
  ValueId factor = models::kNoValue;
  if (options.clip_norm > 0) {
    LOADLINE_ASSIGN_OR_RETURN(
        factor, AddClipFactor(graph, gradients, options.clip_norm));
  }
  Zeros zeros;
  for (const auto& [parameter, gradient] : gradients) {
    // Copies, because adding values moves the graph's vector.
    const std::string name = graph.value(parameter).name;
    const models::TensorType type = graph.value(parameter).type;
    std::vector<ValueId> inputs = {parameter, gradient};
    std::vector<ValueId> updated = {parameter};
    for (const State& state : StatesOf(options, type)) {
      inputs.push_back(models::kNoValue);
      if (state.name.empty()) continue;
      LOADLINE_ASSIGN_OR_RETURN(
          inputs.back(), AddState(graph, absl::StrCat(name, ".", state.name),
                                  zeros.Of(state.type)));
      updated.push_back(inputs.back());
    }
    if (factor != models::kNoValue) inputs.push_back(factor);
    while (inputs.back() == models::kNoValue) inputs.pop_back();
    LOADLINE_ASSIGN_OR_RETURN(
        const std::vector<ValueId> outputs,
        graph.AddNode(OperatorOf(options.kind), absl::StrCat(name, ".update"),
                      inputs, AttributesOf(graph.value(parameter), options),
                      Phase::kUpdate));
    for (size_t i = 0; i < updated.size(); ++i) {
      graph.updates.emplace_back(updated[i], outputs[i]);
    }
    if (options.average > 0) {
      LOADLINE_RETURN_IF_ERROR(
          AddAverage(graph, name, outputs[0], options.average, zeros.Of(type)));
    }
  }
  return absl::OkStatus();
}

}  // namespace loadline::passes
