// YAML fields are turned into flags before flags are parsed, so both share one
// parser, its checks and its messages. Tested by
// tests/tools/cli/yaml_args_test.cc.
#include "tools/cli/yaml_args.h"

#include <yaml-cpp/yaml.h>

#include <exception>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "planner/base/read_file.h"
#include "planner/base/status_macros.h"

namespace loadline::tools {
namespace {

// Settings are a few lines.
constexpr int64_t kMostConfigBytes = int64_t{1} << 20;

absl::Status FieldError(const std::string& path, const YAML::Node& node,
                        const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ":", node.Mark().line + 1, ": ", what));
}

// Without a value the flag would take the next argument as its value.
bool IsEmpty(const YAML::Node& node) {
  return node.IsNull() || (node.IsScalar() && node.Scalar().empty());
}

// Appends the arguments of one scalar field.
void AppendScalar(const std::string& key, const std::string& value,
                  std::vector<std::string>* args) {
  if (key == "model") {
    args->push_back(value);
  } else if (value == "true") {
    args->push_back("--" + key);
  } else if (value != "false") {
    args->push_back("--" + key + "=" + value);
  }
}

absl::StatusOr<std::vector<std::string>> ArgsOfFile(const std::string& path) {
  const auto text = planner::ReadWholeFile(path, kMostConfigBytes);
  if (!text.ok()) {
    return absl::Status(text.status().code(),
                        absl::StrCat("--config ", text.status().message()));
  }
  YAML::Node root;
  try {
    root = YAML::Load(*text);
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", error.what()));
  }
  if (!root.IsMap()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected fields, such as 'lr: 0.001'"));
  }
  std::vector<std::string> args;
  for (const auto& field : root) {
    if (!field.first.IsScalar()) {
      return FieldError(path, field.first, "a field's name must be a word");
    }
    const std::string key = field.first.Scalar();
    if (IsEmpty(field.second)) {
      return FieldError(path, field.first,
                        absl::StrCat(key, ": must not be empty"));
    }
    if (field.second.IsScalar()) {
      AppendScalar(key, field.second.Scalar(), &args);
    } else if (field.second.IsSequence()) {
      for (const YAML::Node& item : field.second) {
        if (!item.IsScalar()) {
          return FieldError(path, item, absl::StrCat(key, ": nested list"));
        }
        if (IsEmpty(item)) {
          return FieldError(path, item,
                            absl::StrCat(key, ": must not be empty"));
        }
        AppendScalar(key, item.Scalar(), &args);
      }
    } else {
      return FieldError(path, field.first,
                        absl::StrCat(key, ": expected a value or a list"));
    }
  }
  return args;
}

}  // namespace

absl::StatusOr<ExpandedArgs> ExpandConfig(std::vector<std::string> args) {
  ExpandedArgs expanded;
  std::vector<std::string>& rest = expanded.args;
  std::vector<std::string> from_files;
  for (size_t i = 0; i < args.size(); ++i) {
    std::string path;
    if (args[i] == "--config") {
      if (i + 1 == args.size()) {
        return absl::InvalidArgumentError("--config: expected a file");
      }
      path = args[++i];
    } else if (absl::StartsWith(args[i], "--config=")) {
      path = args[i].substr(9);
    } else {
      rest.push_back(std::move(args[i]));
      continue;
    }
    LOADLINE_ASSIGN_OR_RETURN(std::vector<std::string> more, ArgsOfFile(path));
    from_files.insert(from_files.end(), more.begin(), more.end());
    expanded.config_files.push_back(std::move(path));
  }
  const size_t after_verb = rest.empty() ? 0 : 1;
  rest.insert(rest.begin() + after_verb, from_files.begin(), from_files.end());
  return expanded;
}

}  // namespace loadline::tools
