// A YAML file of settings as command-line arguments: `lr: 0.1` is `--lr=0.1`.
#ifndef LOADLINE_TOOLS_CLI_YAML_ARGS_H_
#define LOADLINE_TOOLS_CLI_YAML_ARGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace loadline::tools {

// Replaces every `--config FILE` in `args` (the arguments after the program's
// name) by the file's fields, put right after the verb, so that flags on the
// command line win. `model` is the positional argument. Lists repeat a flag,
// `true` sets one, `false` leaves it out. Errors name the file and the line.
absl::StatusOr<std::vector<std::string>> ExpandConfig(
    std::vector<std::string> args);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_CLI_YAML_ARGS_H_
