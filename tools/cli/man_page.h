// The manual page, generated from the command's own flags.
#ifndef LOADLINE_TOOLS_CLI_MAN_PAGE_H_
#define LOADLINE_TOOLS_CLI_MAN_PAGE_H_

#include <string>
#include <vector>

#include "tools/cli/help.h"

namespace loadline::tools {

// Uses roff's man macros: `loadline man | man -l -`.
std::string ManPage(const std::vector<VerbHelp>& verbs,
                    const std::string& version);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_CLI_MAN_PAGE_H_
