#include "tests/tools/in_process.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tools/command.h"

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

std::string FreshFolder(const std::string& name) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("loadline_" + name);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder.string();
}

}  // namespace loadline::tools
