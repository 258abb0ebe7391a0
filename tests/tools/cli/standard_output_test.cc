// Names from files do not reach the terminal as commands, and a result that
// cannot be written is an error of every verb.
#include "tools/cli/standard_output.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "tests/tools/support/fresh_folder.h"
#include "tests/tools/support/in_process.h"
#include "tests/tools/support/model_flags.h"
#include "tools/cli/command.h"
#include "tools/pipeline/files.h"

namespace loadline::tools {
namespace {

using ::testing::HasSubstr;

TEST(Printable, ShowsControlCharactersInsteadOfSendingThem) {
  EXPECT_EQ(Printable("\x1b[2Jw\r\x07\x7f"),
            "\\u001b[2Jw\\u000d\\u0007\\u007f");
  EXPECT_EQ(Printable("\xC2\x9B"
                      "31m"),
            "\\u009b31m");
  EXPECT_EQ(Printable("a\xE2\x80\xAE"
                      "b"),
            "a\\u202eb");
}

TEST(Printable, KeepsOrdinaryText) {
  const std::string text = "a\tb\nfc1.weight \xC3\xA4 \xE2\x82\xAC";
  EXPECT_EQ(Printable(text), text);
  EXPECT_EQ(Printable("w\xFF"), "w\xEF\xBF\xBD");
}

// Runs the command with stdout going to `path`.
CommandOutput RunTo(const std::string& path,
                    const std::vector<std::string>& args) {
  std::fflush(stdout);
  const int kept = dup(STDOUT_FILENO);
  const int file = open(path.c_str(), O_WRONLY);
  dup2(file, STDOUT_FILENO);
  close(file);
  CommandOutput output;
  testing::internal::CaptureStderr();
  output.exit_code = RunCommand(args);
  output.err = testing::internal::GetCapturedStderr();
  std::fflush(stdout);
  dup2(kept, STDOUT_FILENO);
  close(kept);
  std::clearerr(stdout);
  return output;
}

TEST(StandardOutput, OnAFullDiskIsAnErrorOfEveryVerb) {
  const std::string folder = FreshFolder();
  const std::string mlp = ZooPath("mlp.onnx"), machine = FixedMachinePath();
  const std::string plan = folder + "/plan.json", problem = folder + "/q.json";
  const std::string csv = folder + "/b.csv";
  ASSERT_TRUE(WriteFile(csv, "id,lower,upper,size\n0,0,4,8\n").ok());
  ASSERT_EQ(RunInProcess({"plan", mlp, "--machine", machine, "-o", plan,
                          "--problem", problem})
                .exit_code,
            0);
  const std::vector<std::vector<std::string>> commands = {
      {"--help"},
      {"--version"},
      {"plan", "--help"},
      {"man"},
      {"completion", "bash"},
      {"doctor", "l4"},
      {"doctor", "l4", "-o", "-"},
      {"inspect", mlp},
      {"inspect", mlp, "--json"},
      {"inspect", mlp, "--text"},
      {"check", mlp},
      {"estimate", mlp, "--machine", machine},
      {"plan", mlp, "--machine", machine},
      {"plan", mlp, "--machine", machine, "--json"},
      {"plan", mlp, "--machine", machine, "-o", "-"},
      {"pose", mlp, "--machine", machine, "-o", "-"},
      {"report", mlp, "--machine", machine},
      {"report", mlp, "--machine", machine, "--html", "-"},
      {"verify", problem, plan},
      {"compare", plan, plan, "--problem", problem},
      {"pack", csv, "--capacity", "16B"}};
  for (const std::vector<std::string>& command : commands) {
    SCOPED_TRACE(absl::StrJoin(command, " "));
    const CommandOutput output = RunTo("/dev/full", command);
    EXPECT_EQ(output.exit_code, 2);
    EXPECT_THAT(output.err, HasSubstr("standard output: No space left"));
    EXPECT_EQ(RunTo("/dev/null", command).exit_code, 0);
  }
}

}  // namespace
}  // namespace loadline::tools
