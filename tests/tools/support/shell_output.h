// Runs text in a real shell.
#ifndef LOADLINE_TESTS_TOOLS_SUPPORT_SHELL_OUTPUT_H_
#define LOADLINE_TESTS_TOOLS_SUPPORT_SHELL_OUTPUT_H_

#include <string>

namespace loadline::tools {

// The stdout of `command` under sh; fails the test if the command fails.
std::string ShellOutput(const std::string& command);

}  // namespace loadline::tools

#endif  // LOADLINE_TESTS_TOOLS_SUPPORT_SHELL_OUTPUT_H_
