// YAML fields are turned into flags before flags are parsed, so both share one
// parser, its checks and its messages. Tested by
// tests/tools/cli/yaml_args_test.cc.
#include "tools/cli/yaml_args.h"

#include <yaml-cpp/yaml.h>

#include <exception>
#include <map>
#include <utility>

#include "CLI/CLI.hpp"
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

// Reads the values of one field.
absl::StatusOr<ConfigField> ReadField(const std::string& path,
                                      const YAML::Node& name,
                                      const YAML::Node& node) {
  if (!name.IsScalar()) {
    return FieldError(path, name, "a field's name must be a word");
  }
  ConfigField field = {.place = absl::StrCat(path, ":", name.Mark().line + 1),
                       .name = name.Scalar()};
  const auto error = [&](const YAML::Node& at, absl::string_view what) {
    return FieldError(path, at, absl::StrCat(field.name, ": ", what));
  };
  if (IsEmpty(node) || (node.IsSequence() && node.size() == 0)) {
    return error(name, "must not be empty");
  }
  if (node.IsScalar()) {
    field.values.push_back(node.Scalar());
    return field;
  }
  if (!node.IsSequence()) return error(name, "expected a value or a list");
  for (const YAML::Node& item : node) {
    if (IsEmpty(item)) return error(item, "must not be empty");
    if (!item.IsScalar()) return error(item, "nested list");
    field.values.push_back(item.Scalar());
  }
  return field;
}

absl::Status ReadFields(const std::string& path,
                        std::vector<ConfigField>* fields) {
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
  std::map<std::string, int> lines;
  for (const auto& entry : root) {
    LOADLINE_ASSIGN_OR_RETURN(ConfigField field,
                              ReadField(path, entry.first, entry.second));
    const auto [first, is_first] =
        lines.emplace(field.name, entry.first.Mark().line + 1);
    if (!is_first) {
      return FieldError(
          path, entry.first,
          absl::StrCat(field.name, ": given twice, first in line ",
                       first->second));
    }
    fields->push_back(std::move(field));
  }
  return absl::OkStatus();
}

// Appends the arguments of a field that names a flag.
absl::Status AppendFlag(const ConfigField& field, CLI::App* verb,
                        std::vector<std::string>* args) {
  const auto error = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat(field.place, ": ", field.name, ": ", what));
  };
  if (field.name == "config") {
    return error("a configuration file cannot name another one");
  }
  CLI::Option* flag = verb->get_option_no_throw("--" + field.name);
  if (flag == nullptr) {
    return error(absl::StrCat("'", verb->get_name(),
                              "' has no such flag (loadline ", verb->get_name(),
                              " --help-all shows them)"));
  }
  const bool is_switch = flag->get_expected_max() == 0;
  if (field.values.size() > 1 && flag->get_items_expected_max() <= 1) {
    return error("takes one value, not a list");
  }
  for (const std::string& value : field.values) {
    if (!is_switch) {
      args->push_back(absl::StrCat("--", field.name, "=", value));
    } else if (value == "true") {
      args->push_back("--" + field.name);
    } else if (value != "false") {
      return error(absl::StrCat("expected true or false, not '", value, "'"));
    } else if (!flag->get_fnames().empty()) {
      args->push_back(absl::StrCat("--", field.name, "=false"));
    }
  }
  return absl::OkStatus();
}

// What the positional argument is if the command line does not give it.
absl::Status SetModel(const ConfigField& field, CLI::App* verb) {
  CLI::Option* model = verb->get_option_no_throw("model");
  if (model == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        field.place, ": model: '", verb->get_name(), "' takes no model"));
  }
  if (field.values.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(field.place, ": model: takes one value, not a list"));
  }
  model->required(false)->default_val(field.values.front());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ConfigArgs> ReadConfigs(const std::vector<std::string>& args) {
  ConfigArgs config;
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
      config.args.push_back(args[i]);
      continue;
    }
    LOADLINE_RETURN_IF_ERROR(ReadFields(path, &config.fields));
    config.files.push_back(std::move(path));
  }
  return config;
}

absl::StatusOr<std::vector<std::string>> ApplyConfigs(const ConfigArgs& config,
                                                      CLI::App* verb) {
  std::vector<std::string> args = {config.args.front()};
  for (const ConfigField& field : config.fields) {
    LOADLINE_RETURN_IF_ERROR(field.name == "model"
                                 ? SetModel(field, verb)
                                 : AppendFlag(field, verb, &args));
  }
  args.insert(args.end(), config.args.begin() + 1, config.args.end());
  return args;
}

}  // namespace loadline::tools
