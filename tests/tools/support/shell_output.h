// What a real shell makes of a text.
#ifndef LOADLINE_TESTS_TOOLS_SUPPORT_SHELL_OUTPUT_H_
#define LOADLINE_TESTS_TOOLS_SUPPORT_SHELL_OUTPUT_H_

#include <string>

namespace loadline::tools {

// The stdout of `command` under sh; a failure of the test where it fails.
std::string ShellOutput(const std::string& command);

}  // namespace loadline::tools

#endif  // LOADLINE_TESTS_TOOLS_SUPPORT_SHELL_OUTPUT_H_
