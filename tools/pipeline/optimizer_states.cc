// Tested by tests/tools/pipeline/mask_update_test.cc.
#include "tools/pipeline/optimizer_states.h"

#include <cstdint>
#include <set>

#include "absl/strings/str_cat.h"
#include "models/ops/state_blocks.h"

namespace loadline::tools {

absl::StatusOr<OptimizerStates> FindOptimizerStates(
    const models::Graph& step, const std::vector<passes::MaskedAxis>& masks) {
  std::set<std::string> masked;
  for (const passes::MaskedAxis& axis : masks) masked.insert(axis.parameter);
  const models::GraphIndex index = models::IndexGraph(step);
  std::map<int32_t, models::ValueId> parameter_of;  // by updating node
  for (const auto& [value, next] : step.updates) {
    if (step.value(value).kind == models::ValueKind::kParameter) {
      parameter_of.emplace(index.producer[models::Index(next)], value);
    }
  }
  OptimizerStates states;
  for (const auto& [value, next] : step.updates) {
    const models::Value& state = step.value(value);
    const auto found = parameter_of.find(index.producer[models::Index(next)]);
    if (state.kind != models::ValueKind::kState ||
        found == parameter_of.end()) {
      continue;
    }
    const models::Value& parameter = step.value(found->second);
    if (masked.count(parameter.name) > 0 && state.type != parameter.type &&
        !models::IsStateBlocks(state.type)) {
      return absl::UnimplementedError(
          absl::StrCat("pruning '", parameter.name, "': its optimizer state '",
                       state.name, "' is ", state.type.ToString(),
                       ", another type than ", parameter.type.ToString()));
    }
    states[parameter.name].push_back(state.name);
  }
  return states;
}

}  // namespace loadline::tools
