// YAML files of settings: the field `lr: 0.1` stands for the flag `--lr=0.1`.
#ifndef LOADLINE_TOOLS_CLI_YAML_ARGS_H_
#define LOADLINE_TOOLS_CLI_YAML_ARGS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace CLI {
class App;
}

namespace loadline::tools {

struct ConfigField {
  std::string place;  // "train.yaml:3"
  std::string name;
  std::vector<std::string> values;  // at least one; none is empty
};

struct ConfigArgs {
  std::vector<std::string> args;  // the arguments without --config
  std::vector<ConfigField> fields;
  std::vector<std::string> files;  // that were read, in order
};

// Takes every `--config FILE` out of `args` (the arguments after the program's
// name) and reads its fields. Errors name file and line.
absl::StatusOr<ConfigArgs> ReadConfigs(const std::vector<std::string>& args);

// Gives `verb` the fields of its configuration files, and returns the
// arguments to parse: those of the fields directly after the verb, so that
// flags on the command line override them. `model` is the positional argument;
// one on the command line overrides it too. A list repeats a flag that may be
// repeated; for a switch, `true` sets it and `false` omits it. InvalidArgument,
// with file and line, for a field that is no flag of the verb, a list for a
// flag that takes one value, and `config`.
absl::StatusOr<std::vector<std::string>> ApplyConfigs(const ConfigArgs& config,
                                                      CLI::App* verb);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_CLI_YAML_ARGS_H_
