// Matching by name and operator, and a canonical text. Tested by
// tests/passes/compress/recipe_test.cc.
#include "passes/compress/recipe.h"

#include <algorithm>
#include <array>
#include <exception>
#include <map>
#include <regex>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "passes/compress/prune_groups.h"
#include "passes/compress/quantize_points.h"
#include "passes/compress/recipe_groups.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::Node;
using models::NodeId;
using models::ValueId;
using models::ValueKind;

// By node.
using Weights = std::vector<std::vector<ValueId>>;

bool IsWeight(const models::Value& value) {
  const bool frozen = value.kind == ValueKind::kConstant &&
                      value.type.dtype == models::DType::kF32 &&
                      value.type.rank() >= 2;
  return value.kind == ValueKind::kParameter || frozen;
}

std::vector<std::string> OperatorsOf(const std::string& type) {
  if (type == "ConvTranspose") return {"ConvInputGrad"};
  if (type == "Linear") return {"Gemm", "MatMul"};
  if (type == "Conv1d" || type == "Conv2d") return {"Conv"};
  return {type};
}

bool HasType(const Node& node, const std::string& type) {
  for (const std::string& op : OperatorsOf(type)) {
    if (node.op == op) return true;
  }
  return false;
}

// `module` is `name`, or a run of whole parts of it.
bool NamesModule(absl::string_view name, absl::string_view module) {
  const auto ends_part = [&](size_t at) {
    return at == name.size() || name[at] == '.' || name[at] == '/';
  };
  for (size_t at = name.find(module); at != absl::string_view::npos;
       at = name.find(module, at + 1)) {
    const bool starts = at == 0 || name[at - 1] == '/';
    if (starts && ends_part(at + module.size())) return true;
  }
  return false;
}

// One entry of `op_names`.
class Pattern {
 public:
  static absl::StatusOr<Pattern> Parse(const std::string& text) {
    Pattern pattern;
    pattern.text_ = text;
    if (!absl::StartsWith(text, "re:")) return pattern;
    try {
      pattern.regex_.emplace(text.substr(3), std::regex::ECMAScript);
    } catch (const std::exception& error) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", text, "' is no regular expression"));
    }
    return pattern;
  }

  absl::StatusOr<bool> Matches(const Graph& model, const Node& node,
                               const std::vector<ValueId>& weights) const {
    LOADLINE_ASSIGN_OR_RETURN(bool matches, MatchesName(node.name));
    for (ValueId id : weights) {
      if (matches) break;
      LOADLINE_ASSIGN_OR_RETURN(matches, MatchesName(model.value(id).name));
    }
    return matches;
  }

  const std::string& text() const { return text_; }

 private:
  absl::StatusOr<bool> MatchesName(const std::string& name) const {
    if (!regex_.has_value()) return NamesModule(name, text_);
    try {
      return std::regex_search(name, *regex_);
    } catch (
        const std::exception& error) {  // a pattern that backtracks forever
      return absl::InvalidArgumentError(
          absl::StrCat("'", text_, "' is too complex for '", name, "'"));
    }
  }

  std::string text_;
  std::optional<std::regex> regex_;
};

// Which nodes any pattern of a list matches. An error if one matches none.
absl::StatusOr<std::vector<bool>> MatchNames(
    const Graph& model, const Weights& weights,
    const std::vector<std::string>& patterns) {
  std::vector<bool> matched(model.nodes.size(), false);
  for (const std::string& text : patterns) {
    LOADLINE_ASSIGN_OR_RETURN(const Pattern pattern, Pattern::Parse(text));
    bool any = false;
    for (size_t n = 0; n < model.nodes.size(); ++n) {
      if (weights[n].empty()) continue;
      LOADLINE_ASSIGN_OR_RETURN(
          const bool matches,
          pattern.Matches(model, model.nodes[n], weights[n]));
      if (!matches) continue;
      matched[n] = true;
      any = true;
    }
    if (!any) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", text,
                       "' matches no node with parameters, by its name or by "
                       "theirs (loadline inspect --text MODEL lists them)"));
    }
  }
  return matched;
}

std::string TypesWithParameters(const Graph& model, const Weights& weights) {
  std::map<std::string, int> types;
  for (size_t n = 0; n < model.nodes.size(); ++n) {
    if (!weights[n].empty()) ++types[model.nodes[n].op];
  }
  return absl::StrJoin(types, ", ", [](std::string* out, const auto& type) {
    absl::StrAppend(out, type.first);
  });
}

absl::StatusOr<std::vector<bool>> MatchTypes(
    const Graph& model, const Weights& weights,
    const std::vector<std::string>& types) {
  std::vector<bool> matched(model.nodes.size(), false);
  for (const std::string& type : types) {
    bool any = false;
    for (size_t n = 0; n < model.nodes.size(); ++n) {
      if (!HasType(model.nodes[n], type) || weights[n].empty()) continue;
      matched[n] = true;
      any = true;
    }
    if (!any) {
      return absl::InvalidArgumentError(absl::StrCat(
          "no node of type '", type, "' has parameters; types that have: ",
          TypesWithParameters(model, weights)));
    }
  }
  return matched;
}

absl::Status WithKey(const Recipe& recipe, const RecipeEntry& entry,
                     absl::string_view key, const absl::Status& status) {
  return status.ok() ? status
                     : RecipeError(recipe, entry, key, status.message());
}

// A node that can be quantized, with a weight that is trained.
bool IsQuantized(const Graph& model, const Node& node,
                 const std::vector<ValueId>& weights) {
  return CanQuantize(node) &&
         std::any_of(weights.begin(), weights.end(), [&](ValueId id) {
           return model.value(id).kind == ValueKind::kParameter &&
                  model.value(id).type.rank() >= 2;
         });
}

absl::StatusOr<std::vector<NodeId>> NodesOf(const Graph& model,
                                            const Weights& weights,
                                            const Recipe& recipe,
                                            const RecipeEntry& entry) {
  const RecipeObject& object = entry.object;
  const auto types = MatchTypes(model, weights, object.op_types);
  LOADLINE_RETURN_IF_ERROR(
      WithKey(recipe, entry, "object.op_types", types.status()));
  const auto names = MatchNames(model, weights, object.op_names);
  LOADLINE_RETURN_IF_ERROR(
      WithKey(recipe, entry, "object.op_names", names.status()));
  const auto excluded = MatchNames(model, weights, object.exclude_op_names);
  LOADLINE_RETURN_IF_ERROR(
      WithKey(recipe, entry, "object.exclude_op_names", excluded.status()));
  const bool all_quantized = entry.quantize() != nullptr &&
                             object.op_types.empty() && object.op_names.empty();
  std::vector<NodeId> nodes;
  for (size_t n = 0; n < model.nodes.size(); ++n) {
    if (weights[n].empty()) continue;
    if (all_quantized && !IsQuantized(model, model.nodes[n], weights[n])) {
      continue;
    }
    if (!object.op_types.empty() && !(*types)[n]) continue;
    if (!object.op_names.empty() && !(*names)[n]) continue;
    if (!(*excluded)[n]) nodes.push_back(NodeId{static_cast<int32_t>(n)});
  }
  if (nodes.empty()) {
    return RecipeError(recipe, entry, "object",
                       "op_types, op_names and exclude_op_names together leave "
                       "no node");
  }
  return nodes;
}

// The nodes whose weights an entry claims: all of its own, but of an entry of
// heads those that make heads.
absl::StatusOr<std::vector<NodeId>> Claimants(
    const Graph& model, const RecipeEntry& entry,
    const std::vector<NodeId>& nodes) {
  if (entry.prune() == nullptr ||
      entry.prune()->granularity != PruneGranularity::kHead) {
    return nodes;
  }
  LOADLINE_ASSIGN_OR_RETURN(const std::vector<PruneGroup> groups,
                            FindPruneGroups(model));
  std::vector<NodeId> claimants;
  for (const PruneGroup& group : groups) {
    if (!group.heads) continue;
    for (NodeId n : MakersOf(model, group)) {
      if (std::count(nodes.begin(), nodes.end(), n) > 0) claimants.push_back(n);
    }
  }
  return claimants;
}

// Claims of the entries of one kind, by parameter.
absl::Status Claim(const Graph& model, const Weights& weights,
                   const Recipe& recipe, const RecipeEntry& entry,
                   const std::vector<NodeId>& nodes,
                   std::map<ValueId, const RecipeEntry*>* claims) {
  for (NodeId n : nodes) {
    for (ValueId id : weights[models::Index(n)]) {
      const auto [claim, first] = claims->emplace(id, &entry);
      if (first || claim->second == &entry) continue;
      return RecipeError(
          recipe, entry, "object",
          absl::StrCat("claims '", model.value(id).name, "', which entry '",
                       claim->second->name,
                       "' claims too; exclude it in one of them"));
    }
  }
  return absl::OkStatus();
}

std::string Text(const std::vector<std::string>& list) {
  return absl::StrCat("[", absl::StrJoin(list, "\x1f"), "]");
}

template <typename T>
std::string Text(const PerTensor<T>& all) {
  return absl::StrCat(all.weight, "/", all.input, "/", all.output);
}

std::string Text(const std::optional<int64_t>& step) {
  return step.has_value() ? absl::StrCat(*step) : "never";
}

// Numbers as models::FloatToText: the shortest text that reads back the same.
std::string Text(double number) { return models::FloatToText(number); }

template <typename Enum>
int Number(Enum value) {
  return static_cast<int>(value);
}

std::string SpecText(const PruneSpec& spec) {
  return absl::StrCat(
      "prune ", Number(spec.criterion), " ", Number(spec.granularity), " ",
      Number(spec.target.kind), " ", Text(spec.target.share), " ",
      spec.target.count, " ", Text(spec.initial_sparsity), " ", spec.global,
      " ", Text(spec.max_sparsity_per_op), " ", spec.round_to, " ",
      absl::StrCat(Number(spec.schedule), " ", spec.start_step, " ",
                   spec.end_step, " ", spec.update_frequency));
}

std::string SpecText(const QuantizeSpec& spec) {
  return absl::StrCat(
      "quantize ", Number(spec.quantizer), " ", Number(spec.observer), " ",
      Text(spec.targets), " ", Text(spec.bits), " ", Text(spec.symmetric), " ",
      Text(spec.per_channel), " ", spec.reduce_range, " ", spec.start_step, " ",
      absl::StrCat(Text(spec.freeze_observer_step), " ",
                   Text(spec.freeze_bn_step), " ", spec.calibration_batches));
}

}  // namespace

bool IsStructured(PruneGranularity granularity) {
  return granularity == PruneGranularity::kChannel ||
         granularity == PruneGranularity::kHead;
}

std::vector<std::vector<ValueId>> WeightsByNode(const Graph& model) {
  std::map<ValueId, ValueId> transposed;  // from the output to the weight
  for (const Node& node : model.nodes) {
    if (node.op == "Transpose" && IsWeight(model.value(node.inputs[0]))) {
      transposed[node.outputs[0]] = node.inputs[0];
    }
  }
  Weights weights;
  for (const Node& node : model.nodes) {
    std::vector<ValueId>& of_node = weights.emplace_back();
    for (ValueId id : node.inputs) {
      if (id == models::kNoValue) continue;
      const auto weight = transposed.find(id);
      if (weight != transposed.end()) id = weight->second;
      if (IsWeight(model.value(id))) of_node.push_back(id);
    }
  }
  return weights;
}

absl::Status RecipeError(const Recipe& recipe, const RecipeEntry& entry,
                         absl::string_view key, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(recipe.file, ":", entry.line,
                                                 ": entry '", entry.name,
                                                 "': ", key, ": ", what));
}

std::string RecipeText(const Recipe& recipe) {
  std::string text;
  // Nothing for 32: the hash of a recipe without the key.
  if (recipe.state_bits != 32) {
    absl::StrAppend(&text, "optimizer_states ", recipe.state_bits, "\n");
  }
  for (const RecipeEntry& entry : recipe.entries) {
    absl::StrAppend(
        &text, entry.name, " ", Text(entry.object.op_types), " ",
        Text(entry.object.op_names), " ", Text(entry.object.exclude_op_names),
        " ",
        std::visit([](const auto& spec) { return SpecText(spec); }, entry.spec),
        "\n");
  }
  return text;
}

absl::StatusOr<std::vector<std::vector<NodeId>>> MatchRecipe(
    const Graph& model, const Recipe& recipe) {
  const Weights weights = WeightsByNode(model);
  std::vector<std::vector<NodeId>> nodes;
  std::map<ValueId, const RecipeEntry*> pruned;
  std::map<ValueId, const RecipeEntry*> quantized;
  for (const RecipeEntry& entry : recipe.entries) {
    LOADLINE_ASSIGN_OR_RETURN(nodes.emplace_back(),
                              NodesOf(model, weights, recipe, entry));
    LOADLINE_ASSIGN_OR_RETURN(const std::vector<NodeId> claimants,
                              Claimants(model, entry, nodes.back()));
    LOADLINE_RETURN_IF_ERROR(
        Claim(model, weights, recipe, entry, claimants,
              entry.prune() != nullptr ? &pruned : &quantized));
  }
  return nodes;
}

}  // namespace loadline::passes
