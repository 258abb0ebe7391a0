// Tested by tests/passes/compress/phase_model_test.cc.
#include "passes/compress/recipe_groups.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "passes/compress/reduced_axis.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::Node;
using models::NodeId;
using models::ValueId;

constexpr size_t kMostReasons = 3;

std::set<ValueId> ValuesOf(const std::vector<PruneMember>& members) {
  std::set<ValueId> values;
  for (const PruneMember& member : members) values.insert(member.value);
  return values;
}

std::string NamesOf(const Graph& model, const std::vector<NodeId>& nodes) {
  return absl::StrJoin(nodes, ", ", [&](std::string* out, NodeId n) {
    absl::StrAppend(out, model.node(n).name);
  });
}

RecipeGroups GroupsOf(const Graph& model, absl::Span<const PruneGroup> groups,
                      const std::vector<NodeId>& nodes,
                      PruneGranularity granularity) {
  RecipeGroups found;
  const std::set<NodeId> named(nodes.begin(), nodes.end());
  for (size_t g = 0; g < groups.size(); ++g) {
    const std::vector<NodeId> makers = MakersOf(model, groups[g]);
    std::vector<NodeId> missing;
    for (NodeId n : makers) {
      if (named.count(n) == 0) missing.push_back(n);
    }
    if (missing.size() == makers.size()) continue;
    if (!groups[g].frozen.empty()) {
      found.left_out.push_back(
          absl::StrCat(groups[g].name, ": ", groups[g].frozen));
    } else if (!missing.empty()) {
      found.left_out.push_back(absl::StrCat(
          groups[g].name, ": its channels are also those of ",
          NamesOf(model, missing), ", which the entry does not have"));
    } else if (granularity == PruneGranularity::kHead && !groups[g].heads) {
      found.left_out.push_back(absl::StrCat(
          groups[g].name, ": its channels are no attention heads"));
    } else if (groups[g].width > 1) {
      found.groups.push_back(g);
    }
  }
  return found;
}

std::vector<MaskedWeight> WeightsOf(const Graph& model,
                                    const std::vector<NodeId>& nodes) {
  const auto all = WeightsByNode(model);
  std::set<ValueId> weights;
  for (NodeId n : nodes) {
    for (ValueId id : all[models::Index(n)]) {
      const models::Value& value = model.value(id);
      if (value.kind == models::ValueKind::kParameter &&
          value.type.rank() >= 2) {
        weights.insert(id);
      }
    }
  }
  std::vector<MaskedWeight> masked;
  for (ValueId id : weights) masked.push_back({.value = id});
  return masked;
}

absl::Status DoNotFit(const Recipe& recipe, const RecipeEntry& entry,
                      const std::vector<std::string>& weights) {
  if (weights.empty()) return absl::OkStatus();
  return RecipeError(recipe, entry, "method.granularity",
                     absl::StrCat(absl::StrJoin(weights, "; "), ": exclude ",
                                  weights.size() == 1 ? "it" : "them",
                                  " with exclude_op_names"));
}

// Sets the axes of a 2:4 entry. Sparse tensor cores take fours along the axis
// that is summed over. An entry without names and operators leaves out what no
// product reads.
absl::Status FindFours(const Graph& model, const std::vector<NodeId>& nodes,
                       const Recipe& recipe, const RecipeEntry& entry,
                       std::vector<MaskedWeight>* weights) {
  const bool named =
      !entry.object.op_names.empty() || !entry.object.op_types.empty();
  std::vector<MaskedWeight> found;
  std::vector<std::string> misfits;
  for (MaskedWeight weight : *weights) {
    const std::string& name = model.value(weight.value).name;
    std::optional<ReducedAxis> reduced;
    for (NodeId n : nodes) {
      const auto here = ReducedAxisOf(model, model.node(n), weight.value);
      if (!here.has_value()) continue;
      if (reduced.has_value() && reduced->axis != here->axis) {
        misfits.push_back(absl::StrCat(
            "'", name, "' is summed over two axes, and 2:4 needs one"));
        break;
      }
      reduced = here;
    }
    if (!reduced.has_value()) {
      if (named) {
        misfits.push_back(absl::StrCat(
            "'", name,
            "' is no weight of a Conv, ConvTranspose, Gemm or "
            "MatMul, and 2:4 needs fours along the axis that is summed over"));
      }
      continue;
    }
    if (reduced->size % 4 != 0) {
      misfits.push_back(absl::StrCat(
          "'", name, "' has ", reduced->size,
          " along the axis that is summed over, no multiple of the four of "
          "2:4"));
    }
    weight.reduced_axis = reduced->axis;
    found.push_back(weight);
  }
  *weights = std::move(found);
  return DoNotFit(recipe, entry, misfits);
}

// A share of the weights that whole blocks do not hold.
absl::Status CheckBlocks(const Graph& model, const Recipe& recipe,
                         const RecipeEntry& entry,
                         const std::vector<MaskedWeight>& weights) {
  std::vector<std::string> misfits;
  for (const MaskedWeight& weight : weights) {
    const models::Value& value = model.value(weight.value);
    const int64_t rows = value.type.dims[0];
    const int64_t columns = rows == 0 ? 0 : value.type.elements() / rows;
    const int64_t blocks = (rows / 2) * (columns / 4);
    const auto needed =
        std::llround(entry.prune()->target.share *
                     static_cast<double>(value.type.elements()) / 8);
    if (needed > 0 && needed <= blocks) continue;
    misfits.push_back(absl::StrCat(
        "'", value.name, "' of ", rows, " rows of ", columns, " has ", blocks,
        " blocks of 2x4, and its sparsity needs ", needed));
  }
  return DoNotFit(recipe, entry, misfits);
}

std::string Reasons(const std::vector<std::string>& left_out) {
  if (left_out.empty()) {
    return "nothing to prune: its nodes make no group of channels (loadline "
           "groups MODEL lists them)";
  }
  const size_t shown = std::min(kMostReasons, left_out.size());
  return absl::StrCat(
      "nothing to prune: ",
      absl::StrJoin(left_out.begin(),
                    left_out.begin() + static_cast<ptrdiff_t>(shown), "; "),
      shown < left_out.size()
          ? absl::StrCat("; and ", left_out.size() - shown, " more")
          : "");
}

}  // namespace

std::vector<NodeId> MakersOf(const Graph& model, const PruneGroup& group) {
  const std::set<ValueId> members = ValuesOf(group.members);
  const std::set<ValueId> activations = ValuesOf(group.activations);
  std::map<ValueId, ValueId> transposed;  // from the output to the weight
  for (NodeId n : group.nodes) {
    const Node& node = model.node(n);
    if (node.op == "Transpose") transposed[node.outputs[0]] = node.inputs[0];
  }
  const auto is_member = [&](ValueId id) {
    if (id == models::kNoValue) return false;
    const auto weight = transposed.find(id);
    if (weight != transposed.end()) id = weight->second;
    return members.count(id) > 0 && model.value(id).type.rank() >= 2;
  };
  std::vector<NodeId> makers, transposes;
  for (NodeId n : group.nodes) {
    const Node& node = model.node(n);
    const bool reads =
        std::any_of(node.inputs.begin(), node.inputs.end(), is_member);
    const bool makes =
        std::any_of(node.outputs.begin(), node.outputs.end(),
                    [&](ValueId id) { return activations.count(id) > 0; });
    if (!reads || !makes) continue;
    (node.op == "Transpose" ? transposes : makers).push_back(n);
  }
  return makers.empty() ? transposes : makers;
}

absl::StatusOr<std::vector<RecipeGroups>> FindRecipeGroups(
    const Graph& model, absl::Span<const PruneGroup> groups,
    const Recipe& recipe, absl::Span<const std::vector<NodeId>> nodes,
    absl::Span<const size_t> entries) {
  std::vector<RecipeGroups> found(recipe.entries.size());
  for (size_t e : entries) {
    const RecipeEntry& entry = recipe.entries[e];
    if (IsStructured(entry.prune()->granularity)) {
      found[e] = GroupsOf(model, groups, nodes[e], entry.prune()->granularity);
      if (found[e].groups.empty()) {
        return RecipeError(recipe, entry, "object", Reasons(found[e].left_out));
      }
      continue;
    }
    found[e].weights = WeightsOf(model, nodes[e]);
    if (entry.prune()->granularity == PruneGranularity::k2Of4) {
      LOADLINE_RETURN_IF_ERROR(
          FindFours(model, nodes[e], recipe, entry, &found[e].weights));
    } else if (entry.prune()->granularity == PruneGranularity::kBlock2x4) {
      LOADLINE_RETURN_IF_ERROR(
          CheckBlocks(model, recipe, entry, found[e].weights));
    }
    if (found[e].weights.empty()) {
      return RecipeError(recipe, entry, "object",
                         "its nodes have no trained weights to mask");
    }
  }
  return found;
}

}  // namespace loadline::passes
