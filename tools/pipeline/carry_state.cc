// Tested by tests/tools/pipeline/carry_state_test.cc.
#include "tools/pipeline/carry_state.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "models/ops/state_blocks.h"
#include "passes/add_optimizer.h"
#include "planner/base/status_macros.h"
#include "tools/pipeline/state_numbers.h"

namespace loadline::tools {
namespace {

// The value itself, or the parameter that a state belongs to: the longest
// "NAME." that it begins with. Null: none that lost indices.
const KeptAxes::value_type* OwnerOf(const models::Value& value,
                                    const KeptAxes& kept) {
  const std::string& name = value.name;
  const auto own = kept.find(name);
  if (own != kept.end()) return &*own;
  if (value.kind != models::ValueKind::kState) return nullptr;
  const KeptAxes::value_type* owner = nullptr;
  for (const auto& entry : kept) {
    const bool owns = absl::StartsWith(name, entry.first + ".");
    if (owns &&
        (owner == nullptr || entry.first.size() > owner->first.size())) {
      owner = &entry;
    }
  }
  return owner;
}

absl::StatusOr<std::vector<passes::KeptAxis>> AxesOfState(
    const models::Value& state, const models::Value& owner,
    const std::vector<passes::KeptAxis>& kept) {
  std::vector<passes::KeptAxis> axes;
  for (const passes::KeptAxis& axis : kept) {
    const auto i = static_cast<size_t>(axis.axis);
    if (state.type.rank() != owner.type.rank() ||
        (state.type.dims[i] != owner.type.dims[i] && state.type.dims[i] != 1)) {
      return absl::UnimplementedError(
          absl::StrCat("pruning '", owner.name, "': its state '", state.name,
                       "' is ", state.type.ToString(),
                       ", which cannot be cut as ", owner.type.ToString()));
    }
    if (state.type.dims[i] == owner.type.dims[i]) axes.push_back(axis);
  }
  return axes;
}

// A state in 8 bits, whose blocks have numbers of several channels: cut as
// numbers. It stays in 8 bits where the smaller parameter's states are.
absl::StatusOr<std::vector<std::byte>> SliceBlocks(
    const std::string& name, const models::TensorType& parameter,
    const std::vector<passes::KeptAxis>& kept,
    const std::vector<std::byte>& blocks) {
  const std::vector<float> numbers =
      NumbersOfState(blocks, parameter.elements(), HasSign(name));
  LOADLINE_ASSIGN_OR_RETURN(
      const models::Tensor part,
      passes::KeepIndices(
          models::MakeTensor({models::DType::kF32, parameter.dims},
                             numbers.data()),
          kept));
  if (part.type.elements() < passes::kLeastElementsOf8Bits) return *part.data;
  return StateOfNumbers(part.as<float>(), HasSign(name));
}

}  // namespace

RunState InitialState(const models::Graph& graph) {
  RunState state;
  for (const models::Value& value : graph.values) {
    const bool saved = value.kind == models::ValueKind::kParameter ||
                       value.kind == models::ValueKind::kState;
    if (!saved || !value.initial.has_value() ||
        value.initial->data == nullptr) {
      continue;
    }
    state[value.name] = *value.initial->data;
  }
  return state;
}

absl::StatusOr<RunState> SliceState(RunState state, const models::Graph& step,
                                    const KeptAxes& kept) {
  RunState sliced;
  while (!state.empty()) {
    auto node = state.extract(state.begin());
    const std::string& name = node.key();
    const std::optional<models::ValueId> id = step.Find(name);
    const KeptAxes::value_type* owner =
        id.has_value() ? OwnerOf(step.value(*id), kept) : nullptr;
    const std::optional<models::ValueId> owner_id =
        owner == nullptr ? std::nullopt : step.Find(owner->first);
    if (!id.has_value() || !owner_id.has_value()) {
      sliced.insert(std::move(node));
      continue;
    }
    const models::Value& value = step.value(*id);
    const models::Value& parameter = step.value(*owner_id);
    if (models::IsStateBlocks(value.type) && owner->first != name) {
      LOADLINE_ASSIGN_OR_RETURN(
          sliced[name],
          SliceBlocks(name, parameter.type, owner->second, node.mapped()));
      continue;
    }
    LOADLINE_ASSIGN_OR_RETURN(const std::vector<passes::KeptAxis> axes,
                              AxesOfState(value, parameter, owner->second));
    const models::Tensor whole = {
        value.type, std::make_shared<const std::vector<std::byte>>(
                        std::move(node.mapped()))};
    LOADLINE_ASSIGN_OR_RETURN(const models::Tensor part,
                              passes::KeepIndices(whole, axes));
    sliced[name] = *part.data;
  }
  return sliced;
}

absl::Status SetContents(RunState state, models::Graph* step) {
  for (models::Value& value : step->values) {
    const auto found = state.find(value.name);
    if (found == state.end()) continue;
    if (static_cast<int64_t>(found->second.size()) != value.type.bytes()) {
      return absl::InternalError(absl::StrCat(
          "'", value.name, "' has ", found->second.size(), " bytes and is ",
          value.type.ToString(), " in the next phase"));
    }
    value.initial = models::Tensor{
        value.type, std::make_shared<const std::vector<std::byte>>(
                        std::move(found->second))};
    state.erase(found);
  }
  return absl::OkStatus();
}

int64_t BytesOf(const RunState& state) {
  int64_t bytes = 0;
  for (const auto& [name, contents] : state) {
    bytes += static_cast<int64_t>(contents.size());
  }
  return bytes;
}

}  // namespace loadline::tools
