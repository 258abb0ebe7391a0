// Used by tests of output that shells read.
#include "tests/tools/support/shell_output.h"

#include <gtest/gtest.h>
#include <stdio.h>

namespace loadline::tools {

std::string ShellOutput(const std::string& command) {
  FILE* shell = popen(command.c_str(), "r");
  if (shell == nullptr) {
    ADD_FAILURE() << "no shell for " << command;
    return "";
  }
  std::string out;
  for (int c = fgetc(shell); c != EOF; c = fgetc(shell)) {
    out += static_cast<char>(c);
  }
  EXPECT_EQ(pclose(shell), 0) << command;
  return out;
}

}  // namespace loadline::tools
