// Typed reading of one section of a recipe's entry. Every error names the file,
// the line, the entry and the key; a key that nothing asked for is an error.
#ifndef LOADLINE_TOOLS_PIPELINE_RECIPE_FIELDS_H_
#define LOADLINE_TOOLS_PIPELINE_RECIPE_FIELDS_H_

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace loadline::tools {

// "FILE:LINE: entry 'NAME': KEY: WHAT".
absl::Status FieldErrorAt(const std::string& file, const YAML::Node& node,
                          const std::string& entry, absl::string_view key,
                          absl::string_view what);

// Reads a mapping of an entry, such as its `degree`. A key may be given under
// its own name or under names that other tools use. Finish refuses every key
// that was not read before.
class RecipeFields {
 public:
  // `path`: "degree", or "degree.symmetric". A `node` that is not defined is an
  // empty section. InvalidArgument if it is no mapping, or a key is there
  // twice.
  static absl::StatusOr<RecipeFields> Create(const std::string& file,
                                             const std::string& entry,
                                             const std::string& path,
                                             const YAML::Node& node);

  // The node of the only one of `names` that is there; none: a null node.
  // InvalidArgument if two are. All become known keys.
  absl::StatusOr<YAML::Node> Take(std::initializer_list<const char*> names);
  bool Has(const char* name) const { return values_[name].IsDefined(); }

  // Each leaves `*to` as it is if none of the names is there. Errors:
  // InvalidArgument (another type, or out of range).
  absl::Status Int(std::initializer_list<const char*> names, int64_t least,
                   int64_t most, int64_t* to);
  absl::Status Bool(std::initializer_list<const char*> names, bool* to);
  absl::Status Text(std::initializer_list<const char*> names, std::string* to);
  // "0.5" or "50%", from 0 to `most`; `below`: less than `most`.
  absl::Status Share(std::initializer_list<const char*> names, double most,
                     bool below, double* to);
  // A text, or a list of texts.
  absl::Status Texts(std::initializer_list<const char*> names,
                     std::vector<std::string>* to);
  // One of the words.
  template <typename T>
  absl::Status Word(std::initializer_list<const char*> names,
                    absl::Span<const std::pair<const char*, T>> words, T* to);

  // An error at the key that Take found last, or at a name.
  absl::Status Error(absl::string_view what) const;
  absl::Status ErrorAt(absl::string_view name, absl::string_view what) const;
  // InvalidArgument if a key that nothing asked for is nearly one that
  // something did ask for: to be called before a missing key is an error.
  absl::Status CheckSpelling() const;
  // InvalidArgument if there is a key that nothing asked for.
  absl::Status Finish() const;

  const std::string& file() const { return file_; }
  const std::string& entry() const { return entry_; }
  const std::string& path() const { return path_; }
  std::string KeyPath(absl::string_view name) const;

 private:
  RecipeFields() = default;

  std::string file_;
  std::string entry_;
  std::string path_;
  YAML::Node values_;
  std::set<std::string> known_;
  std::string last_;       // the key that was found last
  YAML::Node last_value_;  // and its value
};

template <typename T>
absl::Status RecipeFields::Word(
    std::initializer_list<const char*> names,
    absl::Span<const std::pair<const char*, T>> words, T* to) {
  std::string text;
  const auto status = Text(names, &text);
  if (!status.ok() || text.empty()) return status;
  for (const auto& [word, value] : words) {
    if (text == word) {
      *to = value;
      return absl::OkStatus();
    }
  }
  return Error(absl::StrCat(
      "'", text, "' is none of ",
      absl::StrJoin(words, ", ", [](std::string* out, const auto& word) {
        absl::StrAppend(out, word.first);
      })));
}

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_RECIPE_FIELDS_H_
