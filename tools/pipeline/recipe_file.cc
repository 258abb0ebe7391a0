// One entry after the other. JSON is read as YAML, of which it is a part.
// Tested by tests/tools/pipeline/recipe_file_test.cc.
#include "tools/pipeline/recipe_file.h"

#include <yaml-cpp/yaml.h>

#include <exception>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/read_file.h"
#include "planner/base/status_macros.h"
#include "tools/pipeline/recipe_fields.h"
#include "tools/pipeline/recipe_spec_fields.h"

namespace loadline::tools {
namespace {

using passes::Recipe;
using passes::RecipeEntry;

constexpr int64_t kMostRecipeBytes = int64_t{1} << 20;

absl::Status ReadObject(RecipeFields* object, passes::RecipeObject* to) {
  LOADLINE_RETURN_IF_ERROR(object->Texts({"op_types"}, &to->op_types));
  LOADLINE_RETURN_IF_ERROR(object->Texts({"op_names"}, &to->op_names));
  LOADLINE_RETURN_IF_ERROR(
      object->Texts({"exclude_op_names"}, &to->exclude_op_names));
  // Lists of regular expressions, as in NNI.
  std::vector<std::string> patterns;
  LOADLINE_RETURN_IF_ERROR(object->Texts({"op_names_re"}, &patterns));
  for (const std::string& text : patterns) to->op_names.push_back("re:" + text);
  patterns.clear();
  LOADLINE_RETURN_IF_ERROR(object->Texts({"exclude_op_names_re"}, &patterns));
  for (const std::string& text : patterns) {
    to->exclude_op_names.push_back("re:" + text);
  }
  return absl::OkStatus();
}

// An entry of kind optimizer_states: about all parameters, in all of the run.
absl::Status ReadStates(const std::string& file, const YAML::Node& node,
                        const RecipeEntry& entry, RecipeSections* sections,
                        Recipe* recipe) {
  if (recipe->state_bits != 32) {
    return FieldErrorAt(file, node, entry.name, "method.kind",
                        "an entry before this one is of optimizer_states too");
  }
  if (node["object"].IsDefined()) {
    return FieldErrorAt(file, node, entry.name, "object",
                        "optimizer_states is about all parameters; leave "
                        "object out");
  }
  int64_t bits = 8;
  LOADLINE_RETURN_IF_ERROR(sections->degree.Int({"bits"}, 8, 8, &bits));
  recipe->state_bits = bits;
  return sections->Finish();
}

// Adds the entry to the recipe.
absl::Status ReadEntry(const std::string& file, size_t number,
                       const YAML::Node& node, const RecipeClock& clock,
                       std::set<std::string>* names, Recipe* recipe) {
  RecipeEntry entry;
  entry.name = absl::StrCat("entry", number);
  entry.line = node.Mark().line + 1;
  if (node.IsMap()) {
    const YAML::Node name = node["name"];
    if (name.IsDefined() && name.IsScalar() && !name.Scalar().empty()) {
      entry.name = name.Scalar();
    }
  }
  LOADLINE_ASSIGN_OR_RETURN(RecipeFields fields,
                            RecipeFields::Create(file, entry.name, "", node));
  LOADLINE_RETURN_IF_ERROR(fields.Text({"name"}, &entry.name));
  if (!names->insert(entry.name).second) {
    return FieldErrorAt(file, node, entry.name, "name",
                        "an entry before this one has the same");
  }
  const auto section = [&](const char* name) -> absl::StatusOr<RecipeFields> {
    LOADLINE_ASSIGN_OR_RETURN(const YAML::Node found, fields.Take({name}));
    return RecipeFields::Create(file, entry.name, name, found);
  };
  LOADLINE_ASSIGN_OR_RETURN(RecipeFields method, section("method"));
  LOADLINE_ASSIGN_OR_RETURN(RecipeFields object, section("object"));
  LOADLINE_ASSIGN_OR_RETURN(RecipeFields degree, section("degree"));
  LOADLINE_ASSIGN_OR_RETURN(RecipeFields process, section("process"));
  LOADLINE_RETURN_IF_ERROR(fields.Finish());
  RecipeSections sections = {std::move(method), std::move(object),
                             std::move(degree), std::move(process)};
  std::string kind;
  LOADLINE_RETURN_IF_ERROR(sections.method.Text({"kind"}, &kind));
  LOADLINE_RETURN_IF_ERROR(ReadObject(&sections.object, &entry.object));
  if (kind == "prune") {
    LOADLINE_RETURN_IF_ERROR(
        ReadPrune(&sections, clock, &entry.spec.emplace<passes::PruneSpec>()));
  } else if (kind == "quantize") {
    LOADLINE_RETURN_IF_ERROR(ReadQuantize(
        &sections, clock, &entry.spec.emplace<passes::QuantizeSpec>()));
  } else if (kind == "optimizer_states") {
    return ReadStates(file, node, entry, &sections, recipe);
  } else {
    return FieldErrorAt(
        file, node, entry.name, "method.kind",
        kind.empty()
            ? "missing; expected prune, quantize or optimizer_states"
            : absl::StrCat("'", kind,
                           "' is none of prune, quantize, optimizer_states"));
  }
  LOADLINE_RETURN_IF_ERROR(sections.Finish());
  recipe->entries.push_back(std::move(entry));
  return absl::OkStatus();
}

absl::StatusOr<YAML::Node> EntriesOf(const std::string& file,
                                     absl::string_view text) {
  YAML::Node root;
  try {
    root.reset(YAML::Load(std::string(text)));
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": ", error.what()));
  }
  if (root.IsMap()) {
    bool seen = false;
    for (const auto& field : root) {
      if (field.first.IsScalar() && field.first.Scalar() == "compression") {
        if (!std::exchange(seen, true)) continue;
        return absl::InvalidArgumentError(
            absl::StrCat(file, ":", field.first.Mark().line + 1,
                         ": compression: given twice"));
      }
      return absl::InvalidArgumentError(absl::StrCat(
          file, ":", field.first.Mark().line + 1, ": unknown key '",
          field.first.IsScalar() ? field.first.Scalar() : "?",
          "'; a recipe has only 'compression', a list of entries"));
    }
    root.reset(YAML::Node(root["compression"]));
  }
  if (!root.IsSequence() || root.size() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        file,
        ": compression: expected a list of entries with name, method, "
        "object, degree and process"));
  }
  return root;
}

}  // namespace

absl::StatusOr<Recipe> ReadRecipe(const std::string& file,
                                  absl::string_view text,
                                  const RecipeClock& clock) {
  LOADLINE_ASSIGN_OR_RETURN(const YAML::Node entries, EntriesOf(file, text));
  Recipe recipe;
  recipe.file = file;
  std::set<std::string> names;
  for (size_t i = 0; i < entries.size(); ++i) {
    LOADLINE_RETURN_IF_ERROR(
        ReadEntry(file, i + 1, entries[i], clock, &names, &recipe));
  }
  return recipe;
}

absl::StatusOr<Recipe> ReadRecipeFile(const std::string& path,
                                      const RecipeClock& clock) {
  LOADLINE_ASSIGN_OR_RETURN(const std::string text,
                            planner::ReadWholeFile(path, kMostRecipeBytes));
  return ReadRecipe(path, text, clock);
}

}  // namespace loadline::tools
