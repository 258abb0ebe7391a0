// Shell completion scripts, generated from the command's own flags.
#ifndef LOADLINE_TOOLS_CLI_COMPLETION_H_
#define LOADLINE_TOOLS_CLI_COMPLETION_H_

#include <string>
#include <vector>

#include "tools/cli/help.h"

namespace loadline::tools {

// A script for `eval "$(loadline completion bash)"`.
std::string BashCompletion(const std::vector<VerbHelp>& verbs);
// A script for `eval "$(loadline completion zsh)"`, or a file _loadline in
// $fpath.
std::string ZshCompletion(const std::vector<VerbHelp>& verbs);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_CLI_COMPLETION_H_
