// yaml-cpp throws only in conversions with as<>, which this file does not use.
// Tested by tests/tools/pipeline/recipe_file_test.cc.
#include "tools/pipeline/recipe_fields.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "planner/base/status_macros.h"
#include "tools/cli/nearest_word.h"

namespace loadline::tools {

absl::Status FieldErrorAt(const std::string& file, const YAML::Node& node,
                          const std::string& entry, absl::string_view key,
                          absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(file, ":", node.Mark().line + 1, ": entry '", entry,
                   "': ", key, key.empty() ? "" : ": ", what));
}

absl::StatusOr<RecipeFields> RecipeFields::Create(const std::string& file,
                                                  const std::string& entry,
                                                  const std::string& path,
                                                  const YAML::Node& node) {
  RecipeFields fields;
  fields.file_ = file;
  fields.entry_ = entry;
  fields.path_ = path;
  fields.values_ = YAML::Node(YAML::NodeType::Map);
  if (!node.IsDefined() || node.IsNull()) return fields;
  if (!node.IsMap()) {
    return FieldErrorAt(file, node, entry, path,
                        "expected keys with values, as in {key: value}");
  }
  std::set<std::string> seen;
  for (const auto& field : node) {
    if (!field.first.IsScalar()) {
      return FieldErrorAt(file, field.first, entry, path,
                          "a key must be a word");
    }
    if (!seen.insert(field.first.Scalar()).second) {
      return FieldErrorAt(file, field.first, entry,
                          fields.KeyPath(field.first.Scalar()), "given twice");
    }
  }
  fields.values_ = node;
  return fields;
}

absl::StatusOr<YAML::Node> RecipeFields::Take(
    std::initializer_list<const char*> names) {
  YAML::Node found;
  std::string name_found;
  for (const char* name : names) {
    known_.insert(name);
    const YAML::Node value = std::as_const(values_)[name];
    if (!value.IsDefined()) continue;
    if (!name_found.empty()) {
      return FieldErrorAt(
          file_, value, entry_, KeyPath(name),
          absl::StrCat("means the same as ", name_found, "; give one of them"));
    }
    name_found = name;
    last_ = name;
    last_value_.reset(value);
    found.reset(value);
    if (value.IsNull() || (value.IsScalar() && value.Scalar().empty())) {
      return Error("must not be empty");
    }
  }
  return found;
}

absl::Status RecipeFields::Text(std::initializer_list<const char*> names,
                                std::string* to) {
  LOADLINE_ASSIGN_OR_RETURN(const YAML::Node node, Take(names));
  if (node.IsNull()) return absl::OkStatus();
  if (!node.IsScalar()) return Error("expected one value");
  *to = node.Scalar();
  return absl::OkStatus();
}

absl::Status RecipeFields::Int(std::initializer_list<const char*> names,
                               int64_t least, int64_t most, int64_t* to) {
  std::string text;
  LOADLINE_RETURN_IF_ERROR(Text(names, &text));
  if (text.empty()) return absl::OkStatus();
  int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value)) {
    return Error(absl::StrCat("expected a whole number, found '", text, "'"));
  }
  if (value < least || value > most) {
    return Error(most == INT64_MAX ? absl::StrCat(value, " is below ", least)
                                   : absl::StrCat(value, " is not from ", least,
                                                  " to ", most));
  }
  *to = value;
  return absl::OkStatus();
}

absl::Status RecipeFields::Bool(std::initializer_list<const char*> names,
                                bool* to) {
  std::string text;
  LOADLINE_RETURN_IF_ERROR(Text(names, &text));
  if (text.empty()) return absl::OkStatus();
  if (text != "true" && text != "false") {
    return Error(absl::StrCat("expected true or false, found '", text, "'"));
  }
  *to = text == "true";
  return absl::OkStatus();
}

absl::Status RecipeFields::Share(std::initializer_list<const char*> names,
                                 double most, bool below, double* to) {
  std::string text;
  LOADLINE_RETURN_IF_ERROR(Text(names, &text));
  if (text.empty()) return absl::OkStatus();
  double value = 0;
  const bool percent = absl::EndsWith(text, "%");
  if (!absl::SimpleAtod(absl::StripSuffix(text, "%"), &value)) {
    return Error(
        absl::StrCat("expected a number or a percentage, found '", text, "'"));
  }
  if (percent) value /= 100;
  if (!(value >= 0) || !(value <= most) || (below && value == most)) {
    return Error(absl::StrCat(text, " is not from 0 to ",
                              below ? "less than " : "", most));
  }
  *to = value;
  return absl::OkStatus();
}

absl::Status RecipeFields::Texts(std::initializer_list<const char*> names,
                                 std::vector<std::string>* to) {
  LOADLINE_ASSIGN_OR_RETURN(const YAML::Node node, Take(names));
  if (node.IsNull()) return absl::OkStatus();
  if (node.IsScalar()) {
    *to = {node.Scalar()};
    return absl::OkStatus();
  }
  if (!node.IsSequence()) return Error("expected a list");
  to->clear();
  for (const YAML::Node& item : node) {
    if (!item.IsScalar() || item.Scalar().empty()) {
      return Error("expected a list of words");
    }
    to->push_back(item.Scalar());
  }
  if (to->empty()) return Error("must not be an empty list");
  return absl::OkStatus();
}

std::string RecipeFields::KeyPath(absl::string_view name) const {
  return path_.empty() ? std::string(name) : absl::StrCat(path_, ".", name);
}

absl::Status RecipeFields::Error(absl::string_view what) const {
  return FieldErrorAt(file_, last_value_, entry_, KeyPath(last_), what);
}

absl::Status RecipeFields::ErrorAt(absl::string_view name,
                                   absl::string_view what) const {
  const YAML::Node value = std::as_const(values_)[std::string(name)];
  return FieldErrorAt(file_, value.IsDefined() ? value : values_, entry_,
                      KeyPath(name), what);
}

absl::Status RecipeFields::CheckSpelling() const {
  const std::vector<std::string> known(known_.begin(), known_.end());
  for (const auto& field : values_) {
    const std::string& name = field.first.Scalar();
    if (known_.count(name) > 0) continue;
    const std::string suggestion = DidYouMean(name, known);
    if (suggestion.empty()) continue;
    return FieldErrorAt(file_, field.first, entry_, KeyPath(name),
                        absl::StrCat("unknown key", suggestion));
  }
  return absl::OkStatus();
}

absl::Status RecipeFields::Finish() const {
  LOADLINE_RETURN_IF_ERROR(CheckSpelling());
  for (const auto& field : values_) {
    const std::string& name = field.first.Scalar();
    if (known_.count(name) > 0) continue;
    return FieldErrorAt(
        file_, field.first, entry_, KeyPath(name),
        absl::StrCat("unknown key; keys here: ", absl::StrJoin(known_, ", ")));
  }
  return absl::OkStatus();
}

}  // namespace loadline::tools
