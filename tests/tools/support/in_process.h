// Runs the whole command within the test's process, which takes milliseconds.
#ifndef LOADLINE_TESTS_TOOLS_SUPPORT_IN_PROCESS_H_
#define LOADLINE_TESTS_TOOLS_SUPPORT_IN_PROCESS_H_

#include <string>
#include <vector>

namespace loadline::tools {

struct CommandOutput {
  int exit_code = -1;
  std::string out;
  std::string err;
};

// `args`: without the program's name.
CommandOutput RunInProcess(const std::vector<std::string>& args);

}  // namespace loadline::tools

#endif  // LOADLINE_TESTS_TOOLS_SUPPORT_IN_PROCESS_H_
