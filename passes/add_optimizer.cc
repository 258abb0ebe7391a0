// All updates are appended after the whole backward pass, as an unplanned
// program would run them; the planner moves them forward where that lowers the
// peak. Tested in tests/passes/add_optimizer_test.cc.
#include "passes/add_optimizer.h"

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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
  if (options.nesterov && options.momentum == 0) {
    return absl::InvalidArgumentError(
        "nesterov needs a momentum greater than 0");
  }
  return absl::OkStatus();
}

Attributes AttributesOf(const OptimizerOptions& options) {
  if (options.kind == OptimizerKind::kSgd) {
    return {{"momentum", options.momentum},
            {"weight_decay", options.weight_decay},
            {"nesterov", int64_t{options.nesterov}}};
  }
  return {{"beta1", options.beta1},
          {"beta2", options.beta2},
          {"epsilon", options.epsilon},
          {"weight_decay", options.weight_decay}};
}

std::vector<std::string> StatesOf(const OptimizerOptions& options) {
  if (options.kind == OptimizerKind::kAdamW) return {"exp_avg", "exp_avg_sq"};
  if (options.momentum != 0) return {"momentum"};
  return {};
}

}  // namespace

absl::StatusOr<OptimizerKind> OptimizerKindFromName(absl::string_view name) {
  if (name == "sgd") return OptimizerKind::kSgd;
  if (name == "adamw") return OptimizerKind::kAdamW;
  return absl::InvalidArgumentError(
      absl::StrCat("unknown optimizer '", name, "'; optimizers: sgd, adamw"));
}

absl::Status AddOptimizer(Graph& graph, const Gradients& gradients,
                          const OptimizerOptions& options) {
  LOADLINE_RETURN_IF_ERROR(CheckOptions(options));
  const Attributes attributes = AttributesOf(options);
  const std::string op = options.kind == OptimizerKind::kSgd ? "Sgd" : "AdamW";
  // States that are equally large share their zeros.
  std::map<int64_t, models::Tensor> zeros;
  const auto zero = [&zeros](const models::TensorType& type) {
    auto& shared = zeros[type.bytes()];
    if (shared.data == nullptr) shared = models::ZeroTensor(type);
    return models::Tensor{type, shared.data};
  };
  for (const auto& [parameter, gradient] : gradients) {
    // Copies, because adding values moves the graph's vector.
    const std::string name = graph.value(parameter).name;
    const models::TensorType type = graph.value(parameter).type;
    std::vector<ValueId> inputs = {parameter, gradient};
    std::vector<ValueId> updated = {parameter};
    for (const std::string& state : StatesOf(options)) {
      const std::string state_name = absl::StrCat(name, ".", state);
      if (graph.Find(state_name).has_value()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "the model already has a value named '", state_name,
            "', the name of an optimizer state; rename it in the model"));
      }
      const ValueId id = graph.AddState(state_name, zero(type));
      inputs.push_back(id);
      updated.push_back(id);
    }
    LOADLINE_ASSIGN_OR_RETURN(
        const std::vector<ValueId> outputs,
        graph.AddNode(op, absl::StrCat(name, ".update"), inputs, attributes,
                      Phase::kUpdate));
    for (size_t i = 0; i < updated.size(); ++i) {
      graph.updates.emplace_back(updated[i], outputs[i]);
    }
  }
  return absl::OkStatus();
}

}  // namespace loadline::passes
