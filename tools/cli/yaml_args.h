// Converts a YAML file of settings to arguments: `lr: 0.1` becomes `--lr=0.1`.
#ifndef LOADLINE_TOOLS_CLI_YAML_ARGS_H_
#define LOADLINE_TOOLS_CLI_YAML_ARGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace loadline::tools {

struct ExpandedArgs {
  std::vector<std::string> args;
  std::vector<std::string> config_files;  // that were read, in order
};

// Replaces every `--config FILE` in `args` (the arguments after the program's
// name) by the file's fields. They are inserted directly after the verb, so
// flags on the command line override them. `model` is the positional argument.
// Lists repeat a flag, `true` sets it, `false` omits it. Errors name file and
// line.
absl::StatusOr<ExpandedArgs> ExpandConfig(std::vector<std::string> args);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_CLI_YAML_ARGS_H_
