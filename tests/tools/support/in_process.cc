#include "tests/tools/support/in_process.h"

#include <gtest/gtest.h>

#include "tools/cli/command.h"

namespace loadline::tools {

CommandOutput RunInProcess(const std::vector<std::string>& args) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  CommandOutput output;
  output.exit_code = RunCommand(args);
  output.out = testing::internal::GetCapturedStdout();
  output.err = testing::internal::GetCapturedStderr();
  return output;
}

}  // namespace loadline::tools
